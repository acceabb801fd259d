package revisions

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/loop"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Cluster is the part of the cluster that the loop reads.
type Cluster interface {
	// Object finds a revisioned object.
	Object(ownership.ObjectKey) (*ownership.Owned, bool)
	// Users lists the living revisions that use it.
	Users(ownership.ObjectKey) []*lineage.Holder
	// TooLarge lists the living revisions of a namespace that may use any object there.
	TooLarge(namespace string) []*lineage.Holder
	// UnreadableKinds lists the kinds of revisions that cannot be read in a namespace.
	UnreadableKinds(namespace string) []string
	// Feed adds keys to a queue until the context ends: all of them, and then those to
	// check again.
	Feed(ctx context.Context, add func(ownership.ObjectKey))
}

// Owners writes owners. An object with another UID is a conflict.
type Owners func(ctx context.Context, object ownership.ObjectKey, uid string, owners []metav1.OwnerReference) error

// Announcer notifies users.
type Announcer interface {
	Announce(announce.Event)
}

// afterConflict is how soon a write that conflicted is tried again.
const afterConflict = time.Second

// Dependencies are the parts that the loop works with.
type Dependencies struct {
	Cluster   Cluster
	Owners    Owners
	Announcer Announcer
	// Observes reports whether a namespace asks only for reports.
	Observes func(namespace string) bool
	// Stopped reports whether an operator has stopped the changes of a namespace, and why.
	Stopped func(namespace string) (reason string, stopped bool)
	Metrics prometheus.Registerer
	Log     logr.Logger
	Now     func() time.Time
}

// Reconciler attaches revisioned objects to the revisions that use them.
type Reconciler struct {
	Dependencies
	options Options
	metrics *metrics
	reports *reports
}

// New makes a Reconciler.
func New(o Options, d Dependencies) *Reconciler {
	return &Reconciler{Dependencies: d, options: o, metrics: newMetrics(d.Metrics), reports: newReports()}
}

// Setup adds the loop to the manager. It runs on the leader only.
func (r *Reconciler) Setup(mgr ctrl.Manager) error {
	return loop.Add(mgr, loop.Options[kube.Key]{
		Name: "revisions", Workers: r.options.Workers, About: "source", Log: r.Log,
		NamespaceOf: func(key kube.Key) string { return key.Namespace },
		Reconciler: reconcile.TypedFunc[kube.Key](func(ctx context.Context, key kube.Key) (ctrl.Result, error) {
			return r.Reconcile(ctx, ownership.ObjectKey{Namespace: key.Namespace, Source: input.ID{Kind: input.Kind(key.Kind), Name: key.Name}})
		}),
		Feed: func(ctx context.Context, add func(kube.Key)) {
			r.Cluster.Feed(ctx, func(key ownership.ObjectKey) { add(queued(key)) })
		},
	})
}

// queued is a key in the form that all loops share, because each form adds more than 100 kB to the program.
func queued(key ownership.ObjectKey) kube.Key {
	return kube.Key{GroupKind: schema.GroupKind{Kind: string(key.Source.Kind)}, Namespace: key.Namespace, Name: key.Source.Name}
}

// Reconcile attaches one object.
func (r *Reconciler) Reconcile(ctx context.Context, key ownership.ObjectKey) (ctrl.Result, error) {
	o, ok := r.Cluster.Object(key)
	var in Observation
	if ok {
		in, ok = r.gather(o)
	}
	if !ok {
		r.metrics.unreferenced.Set(float64(r.reports.forget(key)))
		return ctrl.Result{}, nil
	}
	d := Decide(in)
	if d.Verb == Attach {
		if err := r.Owners(ctx, key, o.UID, d.Owners); err != nil {
			return r.failed(o, d, err)
		}
	}
	r.report(o, d)
	return ctrl.Result{RequeueAfter: d.Recheck}, nil
}

// failed sorts errors by their consequence.
func (r *Reconciler) failed(o *ownership.Owned, d Decision, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		// It is gone; the watch reports that.
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		// Another object of that name, which the watch reports, or a conflicting write,
		// which no event reports.
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	r.metrics.count(o, input.AttachFailed)
	if r.reports.isNew(o.Key, input.AttachFailed, err.Error()) {
		r.Announcer.Announce(failureEvent(o, d, err))
	}
	if _, denied := access.Denial(err); denied {
		r.Log.Info("an admission policy denies owners", "source", o.Key.String(), "error", err.Error())
		return ctrl.Result{RequeueAfter: announce.RepeatEvery}, nil
	}
	return ctrl.Result{}, fmt.Errorf("attach %s %s: %w", o.Key, d.Message, err)
}

// report notifies users once: the same decision in the same situation isn't repeated.
func (r *Reconciler) report(o *ownership.Owned, d Decision) {
	isNew := r.reports.isNew(o.Key, d.Reason, d.Message)
	r.metrics.unreferenced.Set(float64(r.reports.unreferenced()))
	if !isNew {
		return
	}
	r.metrics.count(o, d.Reason)
	level := 1
	if d.Verb == Attach || d.Verb == Observe || d.Verb == Report {
		level = 0
	}
	r.Log.V(level).Info("decided", "source", o.Key.String(), "verb", string(d.Verb), "reason", string(d.Reason), "message", d.Message)
	if e, ok := eventFor(o, d); ok {
		r.Announcer.Announce(e)
	}
}
