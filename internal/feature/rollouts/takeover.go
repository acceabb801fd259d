package rollouts

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

// goneFor is how long the entry of a deleted workload is kept. A workload of the same
// name that is created meanwhile may take over its pods, as with "kubectl delete
// --cascade=orphan" and apply.
const goneFor = 10 * time.Minute

// entry is the entry on record. Nothing is known about another UID under the same name,
// unless it took over the pods. That can't be determined before its controller has acted.
func (g *Gatherer) entry(ctx context.Context, w *kube.Workload, past kube.AskPast) (e record.Entry, notActed bool, err error) {
	e, ok := g.Entry(w.Key)
	unknown := record.Entry{ID: w.Key.ID(), UID: w.UID, Inputs: map[input.ID]record.Delivered{}, Unstored: record.Unstored{Lost: e.Lost, TooNew: e.TooNew}}
	switch {
	case !ok || e.Left && !g.namespaceAsks(w):
		return unknown, false, nil
	case e.UID == w.UID:
		return withoutReplaced(e, w), false, nil
	case g.Revisions == nil || len(e.Inputs) == 0 || g.isOver(e):
		return unknown, false, nil
	case !w.Status.Observed:
		return unknown, true, nil
	}
	before, err := past(ctx, timeline.FromRevisions)
	if err != nil || before.NotActed || !tookOver(w, before.Revisions, goneAt(e)) {
		return unknown, before.NotActed, err
	}
	e = e.Clone()
	// The new object restarts its generations, and may have another template.
	e.UID, e.Template.Generation, e.Inherited, e.TakenOver = w.UID, 0, w.StartsFrom(), true
	return withoutReplaced(e, w), false, nil
}

// withoutReplaced ends the note on pods that the workload took over. Their template may be back by now.
func withoutReplaced(e record.Entry, w *kube.Workload) record.Entry {
	if w.RolledOutSinceMade() || w.Replaced != "" { // its pods were replaced since
		e.Inherited = ""
	}
	return e
}

// namespaceAsks reports whether a namespace setting asks for the workload, so its entry
// still counts.
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

// goneAt is when the workload of an entry was known to be gone, by the API server's clock, as the
// revisions are created; zero while that isn't known.
func goneAt(e record.Entry) time.Time {
	if e.GoneAt.IsZero() {
		return time.Time{}
	}
	return e.WrittenAt
}

// tookOver reports whether new pods are created from a revision that is older than the
// workload: then its pods belonged to the previous workload. The same holds while the
// workload is paused, and when our own patch replaced those pods but the process ended
// before recording it. A revision that was created after the previous workload was deleted
// doesn't belong to that workload.
func tookOver(w *kube.Workload, revisions []timeline.Revision, gone time.Time) bool {
	return slices.ContainsFunc(revisions, func(r timeline.Revision) bool {
		return r.Created.Before(w.Created) && (gone.IsZero() || !r.Created.After(gone)) && (r.Current || w.Status.Paused || w.RolledOutSinceMade())
	})
}

// own returns the workload as this installation sees it, and the other installation that
// rolled it out last. That one's marks in the template can't be compared: it uses another
// key for Secret digests.
func (g *Gatherer) own(w *kube.Workload) (seen *kube.Workload, other string) {
	if g.Installation == "" || w.RolledOutBy == "" || w.RolledOutBy == g.Installation || w.RolledOutAt.IsZero() {
		return w, ""
	}
	copied := *w
	copied.RolledOutAt = time.Time{}
	return &copied, w.RolledOutBy
}
