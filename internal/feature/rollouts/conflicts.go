package rollouts

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// mostPatches is how often one decision is sent. A second one nearly always gets through.
	mostPatches = 5
	// Most conflicts are with a controller's status write, and end with the next watch event. The
	// pauses between attempts grow, because each costs the API server several requests.
	firstConflict, longestConflict = 200 * time.Millisecond, time.Minute
	// silentConflicts is how many attempts in a row may fail before users are notified.
	silentConflicts = 6
)

// newConflicts paces and counts the attempts in a row that other clients' writes made fail.
func newConflicts() workqueue.TypedRateLimiter[kube.Key] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[kube.Key](firstConflict, longestConflict)
}

// rollOut delivers the order. The API server refuses the patch of an object that was written
// since the decision, whatever was written: a label, or a status that Lockstep doesn't use. While
// the decision holds, the patch is sent again at once. Beside a client that writes all the time,
// waiting for the watch would only lead to the next conflict.
func (r *Reconciler) rollOut(ctx context.Context, w *kube.Workload, order input.Order) (kube.RolledOut, error) {
	out, err := r.Roller.RollOut(ctx, w, order)
	for range mostPatches - 1 {
		if !apierrors.IsConflict(err) {
			break
		}
		later, unread := r.Cluster.Reread(ctx, w)
		if unread != nil || r.stopped(w.Key.Namespace) {
			break
		}
		rebased, holds := w.Rebased(later)
		if !holds {
			break
		}
		r.metrics.countConflict(w)
		w = rebased
		out, err = r.Roller.RollOut(ctx, w, order)
	}
	return out, err
}

// overtaken makes a failure of the conflicts that don't end. It doesn't wrap the last one, which
// is no reason to be silent about it any more.
func (r *Reconciler) overtaken(key kube.Key, err error) error {
	if r.conflicts.NumRequeues(key) < silentConflicts {
		return err
	}
	return fmt.Errorf("other clients wrote the workload during each of the last %d attempts, and Lockstep keeps trying: %v", silentConflicts+1, err) //nolint:errorlint // see above
}
