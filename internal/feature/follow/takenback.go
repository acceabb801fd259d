package follow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Template is what is known of a workload's pod template, and of what other writers
// made of it.
type Template struct {
	// Now is the one that the entry takes into account after the decision.
	Now record.Template
	// Unobserved is true when another writer changed the template and the workload's
	// controller has not acted on it yet, so that it cannot be told what was taken back.
	Unobserved bool
	// Back are the inputs that were taken back, each with the revision that new pods
	// are made from.
	Back map[input.ID]string
	// From tells, of inputs that another rollout gave, which revisions the workload had
	// before it.
	From map[input.ID]timeline.Origin
	// Released are inputs that were taken back until a person accepted them.
	Released []input.ID
	// Hold is a hold that counts although an undo removed its annotation.
	Hold record.Hold
}

// earlierRevision stands for the name of a revision that is not known.
const earlierRevision = "unknown"

// judge finds out which inputs other writers took back, and bars them. It asks for
// revisions only when another writer has changed the template since the last look, and
// when it is known of an input which revisions came before it, or a hold is gone.
func (g *Gatherer) judge(ctx context.Context, w *kube.Workload, in *Input) error {
	known := in.Entry.Template
	t := Template{Now: w.Template(), Back: in.backOnRecord(), From: in.origins(w), Hold: in.undoneHold()}
	if t.Now.Sum == known.Sum || t.Now.IsOlder(known) {
		// Another writer changed nothing, or the cache does not have our own patch yet.
		t.Now = known
	}
	changed, holdGone := t.Now != known, in.lostHoldTo(t.Now)
	switch {
	case g.Revisions == nil:
		t.Now, t.Back = record.Template{}, in.backByMarks()
	case known == record.Template{}:
		t.Back = in.backByMarks()
	case changed && w.MovedAt.After(in.Entry.MovedAt) && !w.Status.Aborted:
		// A patch of ours that is not on record, or a person's "lockstep roll".
		t.Back = map[input.ID]string{}
	case !in.deliveredAndGone(w) && !holdGone && (!changed || !in.hasOrigins() && !in.deliveredBefore() && !t.lacksGiver()):
	case !w.Status.Observed:
		t.Unobserved = true
	default:
		revisions, err := g.Revisions(ctx, w)
		switch {
		case errors.Is(err, timeline.ErrNoRight):
			t.Now = known // to be judged when there is the right
		case err != nil:
			return err
		default:
			t.Back = in.takenBack(w, t.From, revisions)
			t.nameGiver(*in, w, revisions)
			if holdGone && timeline.IsUsedAgain(revisions) {
				t.Hold = record.Hold{On: true, By: in.Entry.Hold.By, Undone: true}
			}
		}
	}
	t.Unobserved = t.Unobserved || g.Revisions != nil && in.awaitsRevision(w)
	in.Template = t
	in.release(w)
	in.bar(w)
	return nil
}

// lacksGiver reports whether only a revision tells what another rollout has made current: a
// workload of a kind whose status does not name it.
func (t Template) lacksGiver() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(t.From)), timeline.Origin.IsTime)
}

// nameGiver tells of each input which revision gave it: the current one, unless the
// revisions tell of an earlier one.
func (t Template) nameGiver(in Input, w *kube.Workload, revisions []timeline.Revision) {
	current := slices.IndexFunc(revisions, func(r timeline.Revision) bool { return r.Current })
	for _, f := range in.Findings {
		from, given := t.From[f.ID]
		switch {
		case isDeliveredAndGone(w, f), f.Reason == input.DeliveredBefore && w.Revision > 0:
			t.From[f.ID] = in.deliveredAfter(f, from, revisions)
		case given && current >= 0:
			t.From[f.ID] = from.By(revisions[current].Name)
		}
	}
}

// backOnRecord are the inputs that are on record as taken back.
func (in Input) backOnRecord() map[input.ID]string {
	back := map[input.ID]string{}
	for id, given := range in.Entry.Inputs {
		if given.Back != "" {
			back[id] = given.Back
		}
	}
	return back
}

// backByMarks are the inputs that the families call undone by what the template shows.
func (in Input) backByMarks() map[input.ID]string {
	back := map[input.ID]string{}
	for _, f := range in.Findings {
		if f.Reason == input.Undone {
			back[f.ID] = earlierRevision
		}
	}
	return back
}

// hasOrigins reports whether anything can be said about what was taken back.
func (in Input) hasOrigins() bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return in.Entry.Inputs[f.ID].From != "" })
}

// awaitsRevision reports whether an input is delivered by another rollout that has not
// begun: a template that is changed back before it begins delivers nothing.
func (in Input) awaitsRevision(w *kube.Workload) bool {
	return !w.Status.Observed && w.Replaced != "" && slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Reason == input.DeliveredByRollout })
}

// deliveredAndGone reports whether an input was delivered, and pods are made from another
// revision than the one that gave it.
func (in Input) deliveredAndGone(w *kube.Workload) bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return isDeliveredAndGone(w, f) })
}

// isDeliveredAndGone: a revision shows that our own rollout gave the input, and the template
// does not; or the rollout, ours or another writer's, was aborted before Lockstep looked.
func isDeliveredAndGone(w *kube.Workload, f input.Finding) bool {
	switch f.Reason {
	case input.DeliveredBefore:
		return w.Status.Aborted || w.Shown[f.ID] != f.Shows
	case input.DeliveredByRollout:
		return w.Status.Aborted
	default:
		return false
	}
}

// takenBack asks the revisions about every input that the workload was given.
func (in Input) takenBack(w *kube.Workload, origins map[input.ID]timeline.Origin, revisions []timeline.Revision) map[input.ID]string {
	back := map[input.ID]string{}
	for _, f := range in.Findings {
		given := in.Entry.Inputs[f.ID]
		from, shows := given.From, given.Shown
		if f.Current == f.Given {
			shows = f.Shows
		}
		if isDeliveredAndGone(w, f) {
			from, shows = in.deliveredAfter(f, origins[f.ID], revisions), f.Shows
		}
		if to, is := from.TakenBack(f.ID, shows, revisions); is {
			back[f.ID] = to
		}
	}
	return back
}

// deliveredBefore reports whether a revision shows that an input was delivered.
func (in Input) deliveredBefore() bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Reason == input.DeliveredBefore })
}

// deliveredAfter is the origin of an input that our own rollout gave, by the first use of a
// revision that shows it, after all that is on record; where nothing tells that, by the
// newest. What another writer's rollout gave no revision shows.
func (in Input) deliveredAfter(f input.Finding, from timeline.Origin, revisions []timeline.Revision) timeline.Origin {
	if f.Reason == input.DeliveredByRollout {
		return from
	}
	var newest timeline.Revision
	var first int64
	for _, r := range revisions {
		if r.Shown[f.ID] != f.Shows {
			continue
		}
		if r.Number > newest.Number || r.Created.After(newest.Created) {
			newest = r
		}
		if n := r.FirstAfter(in.Entry.MovedFrom); n > 0 && (first == 0 || n < first) {
			first = n
		}
	}
	if first == 0 {
		return newest.Before()
	}
	return timeline.AfterNumber(first - 1)
}

// origins tell, of inputs that another rollout or a patch that is not on record gave,
// which revisions the workload had before.
func (in Input) origins(w *kube.Workload) map[input.ID]timeline.Origin {
	from := map[input.ID]timeline.Origin{}
	for _, f := range in.Findings {
		switch {
		case (f.Reason == input.DeliveredByRollout || f.Reason == input.NewBasis) && w.Borrows == kube.Key{}:
			// A template that uses other keys has loaded it too.
			from[f.ID] = w.Replaced.By(w.Status.UpdateRevision)
		case f.Reason == input.DeliveredByRollout, f.Reason == input.DeliveredBefore:
			from[f.ID] = w.BeforeLast()
		}
	}
	return from
}

// release ends what a person has accepted since. A release from before the template was
// written is only about what is on record: an undo may have brought its annotation back.
func (in *Input) release(w *kube.Workload) {
	if in.Intent.Release <= in.Entry.Released || in.Template.Unobserved {
		return
	}
	accepted, isEarlier := maps.Clone(in.Template.Back), w.HasTemplateSince(in.Intent.Release)
	if isEarlier {
		maps.DeleteFunc(accepted, func(id input.ID, _ string) bool { return in.Entry.Inputs[id].Back == "" })
	}
	if !isEarlier || in.Entry.Hold.Undone {
		in.Template.Hold = record.Hold{}
	}
	in.Template.Released = slices.SortedFunc(maps.Keys(accepted), func(a, b input.ID) int { return strings.Compare(a.String(), b.String()) })
	maps.DeleteFunc(in.Template.Back, func(id input.ID, _ string) bool { return slices.Contains(in.Template.Released, id) })
}

// bar bars what was taken back. A rollout does not take back what it gives itself, also
// when it uses an earlier revision again. Another version than the one that was taken
// back is not barred; one that cannot be read may well be the same.
func (in *Input) bar(w *kube.Workload) {
	in.Findings = slices.Clone(in.Findings)
	for i, f := range in.Findings {
		if f.Reason == input.Undone {
			f.Reason = input.InStep
		}
		if f.Standing == input.Record && f.Reason != input.NewBasis && !isDeliveredAndGone(w, f) {
			delete(in.Template.Back, f.ID)
		}
		to, back := in.Template.Back[f.ID]
		if back && f.Standing == input.Due && f.Current == f.Given {
			// It comes with the template, which does not have it any more.
			f.Standing, f.Reason = input.Settled, input.InStep
		}
		if back && f.Standing != input.Due && f.Reason != input.Missing {
			f.Bars = append(slices.Clone(f.Bars), input.Bar{Reason: input.Undone, By: to})
			if f.Reason == input.InStep || f.Reason == input.Pinned || f.Reason == input.Accepted {
				f.Reason = input.Undone
			}
		}
		in.Findings[i] = f
	}
}

// takenBack says which inputs were taken back, and to what; empty when none was.
func takenBack(findings []input.Finding) string {
	var parts []string
	for _, f := range findings {
		if to, back := f.BarredFor(input.Undone); back {
			parts = append(parts, fmt.Sprintf("%s %s was taken back: new pods are made from revision %s", f.ID, f.Current.Short(), to))
		}
	}
	return strings.Join(parts, "; ")
}
