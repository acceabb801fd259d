package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/rollout"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// Pods are the pods of workloads, for the strategies that work on them.
type Pods interface {
	List(context.Context, *kube.Workload) ([]rollout.Pod, error)
	Evict(context.Context, rollout.Pod) error
	Touch(ctx context.Context, pod rollout.Pod, shown string) error
}

const (
	// evictionCheck is how often a series of evictions looks whether the workload
	// is available again.
	evictionCheck = 2 * time.Second
	// budgetCheck is how long to wait after a disruption budget refused.
	budgetCheck = 10 * time.Second
)

// evict makes the next step of a series of evictions. The decision is on record
// before the first pod goes, so that a restart continues the series and does not
// begin it again.
func (r *Reconciler) evict(ctx context.Context, w *kube.Workload, in Input, d Decision) (record.Entry, Decision, error) {
	e, begun, err := r.beginEviction(ctx, w, in, d)
	if err != nil {
		return e, d, err
	}
	d.Recheck = evictionCheck
	if begun {
		// Times of the API server are a second coarse. A pod that replaces one evicted
		// right now could bear the very time of the decision, and would be evicted too.
		return e, d, nil
	}
	pods, err := r.Pods.List(ctx, w)
	if err != nil {
		return e, d, err
	}
	victim, done := nextEviction(pods, max(w.Replicas, e.EvictPods), e.EvictSince)
	switch {
	case done:
		d.Recheck, d.Reason = 0, input.Evicted
		return e, d.delivered(), nil
	case victim == nil:
		return e, d, nil
	}
	err = r.Pods.Evict(ctx, *victim)
	if apierrors.IsTooManyRequests(err) {
		d.Recheck, err = budgetCheck, nil
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return e, d, err
}

// beginEviction puts the decision on record, unless it is there, with the API
// server's time: our clock may be off, and pods are compared with it. That time
// is known only after a first write; the second one follows before any eviction.
func (r *Reconciler) beginEviction(ctx context.Context, w *kube.Workload, in Input, d Decision) (e record.Entry, begun bool, err error) {
	want := input.Order{All: in.Findings, Due: d.Moves}.Shown().String()
	e = in.Entry.Clone()
	if e.EvictFor == want && !e.EvictSince.IsZero() {
		return e, false, nil
	}
	e.EvictFor, e.EvictSince, e.PendingSince = want, time.Time{}, d.PendingSince
	if e.EvictPods, err = r.unsaidReplicas(ctx, w); err != nil {
		return e, false, err
	}
	e.EvictSince, err = r.Records.PutNow(ctx, w.Key, e)
	return e, true, err
}

// unsaidReplicas is how many pods there are of a workload that does not say how many
// it wants, zero for the others. Without it the gap between a pod and its successor
// would not be seen.
func (r *Reconciler) unsaidReplicas(ctx context.Context, w *kube.Workload) (int, error) {
	if w.Replicas > 0 {
		return 0, nil
	}
	pods, err := r.Pods.List(ctx, w)
	ended := func(p rollout.Pod) bool { return p.Terminating }
	return len(slices.DeleteFunc(pods, ended)), err
}

// nextEviction chooses the next pod: one that is not younger than the decision,
// rather one that does not work anyway. It chooses none while an earlier step
// has not come to its end, and is done when no such pod is left.
func nextEviction(pods []rollout.Pod, replicas int, since time.Time) (victim *rollout.Pod, done bool) {
	ready, moving := 0, false
	done = true
	for i, p := range pods {
		younger := p.Created.After(since)
		done = done && younger
		moving = moving || p.Terminating || younger && !p.Ready
		if p.Ready && !p.Terminating {
			ready++
		}
		if !younger && (victim == nil || victim.Ready && !p.Ready) {
			victim = &pods[i]
		}
	}
	if done || moving || victim.Ready && ready < replicas {
		return nil, done
	}
	return victim, false
}

// refresh touches every pod that does not show the current versions. Pods that
// start later mount the new content by themselves.
func (r *Reconciler) refresh(ctx context.Context, w *kube.Workload, order input.Order) error {
	pods, err := r.Pods.List(ctx, w)
	if err != nil {
		return err
	}
	shown := order.Shown().String()
	var failed []error
	for _, p := range pods {
		if p.Terminating || p.Shown.String() == shown {
			continue
		}
		if err := r.Pods.Touch(ctx, p, shown); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// mounted lists the changed sources that a refresh reaches, at least in a volume.
func mounted(due []input.Finding) []input.Finding {
	return slices.DeleteFunc(slices.Clone(due), func(f input.Finding) bool { return !f.Volume })
}

// unrefreshable lists the changed sources that no refresh reaches.
func unrefreshable(due []input.Finding) []input.Finding {
	var found []input.Finding
	for _, f := range due {
		if f.Env || f.SubPath || !f.Volume {
			found = append(found, f)
		}
	}
	return found
}
