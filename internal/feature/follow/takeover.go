package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// goneFor is how long the entry of a deleted workload stays. One of its name that is made
// meanwhile may take over its pods: "kubectl delete --cascade=orphan", and apply.
const goneFor = 10 * time.Minute

// entry is what is on record. Of another UID under the same name nothing is known, unless
// it took over the pods; that cannot be told before its controller has acted.
func (g *Gatherer) entry(ctx context.Context, w *kube.Workload) (e record.Entry, undecided bool, err error) {
	e, ok := g.Entry(w.Key)
	unknown := record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.ID]record.Given{}, Lost: e.Lost, TooNew: e.TooNew}
	switch {
	case !ok || e.Left && !g.namespaceAsks(w):
		return unknown, false, nil
	case e.UID == w.UID:
		return e, false, nil
	case g.Revisions == nil || len(e.Inputs) == 0 || g.isOver(e):
		return unknown, false, nil
	case !w.Status.Observed:
		return unknown, true, nil
	}
	revisions, err := g.Revisions(ctx, w)
	switch {
	case errors.Is(err, timeline.ErrNoRight):
		return unknown, false, nil
	case errors.Is(err, timeline.ErrNotActed):
		return unknown, true, nil
	}
	if err != nil || !tookOver(w, revisions) {
		return unknown, false, err
	}
	e = e.Clone()
	// The new object counts its generations anew, and may have another template.
	e.UID, e.Template.Generation, e.Inherited, e.TakenOver = w.UID, 0, w.StartsFrom(), true
	if w.MovedSinceMade() || w.Replaced != "" { // its pods were replaced since
		e.Inherited = ""
	}
	return e, false, nil
}

// namespaceAsks reports whether a setting of the namespace asks for the workload, so that
// what is on record of it still counts.
func (g *Gatherer) namespaceAsks(w *kube.Workload) bool {
	ns, ok := g.View.Namespace(w.Key.Namespace)
	if !ok {
		return false
	}
	_, asks := ns.Annotations[settings.Reload]
	return asks
}

// isOver reports whether the workload of an entry has been gone for too long.
func (g *Gatherer) isOver(e record.Entry) bool {
	return !e.GoneAt.IsZero() && g.Now().Sub(e.GoneAt) >= goneFor
}

// tookOver reports whether new pods are made from a revision that is older than the
// workload: then its pods are those of the one before. So they are while it is paused, and
// so they were when a patch of ours has replaced them since, and the process ended before
// that was on record.
func tookOver(w *kube.Workload, revisions []timeline.Revision) bool {
	return slices.ContainsFunc(revisions, func(r timeline.Revision) bool {
		return r.Created.Before(w.Created) && (r.Current || w.Status.Paused || w.MovedSinceMade())
	})
}

// forgetGone drops what is remembered of a workload that is certainly gone, and returns
// when to look again. Of one that is only no longer watched, because its namespace left
// the selector, the record stays; people are told anew when it is back.
func (r *Reconciler) forgetGone(key kube.Key) (time.Duration, error) {
	r.reported.forget(key)
	r.conflicts.forget(key)
	for _, family := range r.Families {
		family.Drop(key)
	}
	if !r.Cluster.Lists(key) {
		return 0, nil
	}
	e, ok := r.Records.Entry(key)
	now := r.Now()
	switch {
	case !ok, r.Revisions == nil, len(e.Inputs) == 0, r.gatherer.isOver(e), r.Cluster.LacksNamespace(key.Namespace):
		r.Records.Forget(key)
		return 0, nil
	case e.GoneAt.IsZero() || e.GoneAt.After(now):
		e = e.Clone()
		e.GoneAt = now
		return goneFor, r.Records.Put(key, e)
	}
	return e.GoneAt.Add(goneFor).Sub(now), nil
}

// own returns the workload as this installation sees it, and the other one that moved it
// last. What that one showed in the template is not ours to compare: it has another key
// for the digests of Secrets.
func (g *Gatherer) own(w *kube.Workload) (seen *kube.Workload, other string) {
	if g.Installation == "" || w.MovedBy == "" || w.MovedBy == g.Installation || w.MovedAt.IsZero() {
		return w, ""
	}
	copied := *w
	copied.MovedAt = time.Time{}
	return &copied, w.MovedBy
}
