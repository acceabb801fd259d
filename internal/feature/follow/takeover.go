package follow

import (
	"context"
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
func (g *Gatherer) entry(ctx context.Context, w *kube.Workload, past kube.AskPast) (e record.Entry, notActed bool, err error) {
	e, ok := g.Entry(w.Key)
	unknown := record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.ID]record.Delivered{}, Unstored: record.Unstored{Lost: e.Lost, TooNew: e.TooNew}}
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
	before, err := past(ctx)
	if err != nil || before.NotActed || !tookOver(w, before.Revisions, e.GoneAt) {
		return unknown, before.NotActed, err
	}
	e = e.Clone()
	// The new object counts its generations anew, and may have another template.
	e.UID, e.Template.Generation, e.Inherited, e.TakenOver = w.UID, 0, w.StartsFrom(), true
	if w.RolledOutSinceMade() || w.Replaced != "" { // its pods were replaced since
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
// that was on record. A revision that was made after the one before was gone is not its own.
func tookOver(w *kube.Workload, revisions []timeline.Revision, gone time.Time) bool {
	return slices.ContainsFunc(revisions, func(r timeline.Revision) bool {
		return r.Created.Before(w.Created) && (gone.IsZero() || !r.Created.After(gone)) && (r.Current || w.Status.Paused || w.RolledOutSinceMade())
	})
}

// own returns the workload as this installation sees it, and the other one that moved it
// last. What that one showed in the template is not ours to compare: it has another key
// for the digests of Secrets.
func (g *Gatherer) own(w *kube.Workload) (seen *kube.Workload, other string) {
	if g.Installation == "" || w.RolledOutBy == "" || w.RolledOutBy == g.Installation || w.RolledOutAt.IsZero() {
		return w, ""
	}
	copied := *w
	copied.RolledOutAt = time.Time{}
	return &copied, w.RolledOutBy
}
