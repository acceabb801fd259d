package rollouts

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// permissionCheck is when to check again whether revisions can be read: no event reports that
// the permission was granted.
const permissionCheck = 5 * time.Minute

// judge finds out which inputs other writers reverted, and bars them.
func judge(w *kube.Workload, in Observation) Observation {
	t, open := in.compare(w)
	switch {
	case in.History.Past.NotActed, (open || in.isReleased() && len(t.Reverted) > 0) && !w.Status.Observed, !in.History.MarksOnly && in.awaitsRevision(w):
		in.History.NotActed, in.AwaitsStatus = true, true
	case !open:
	case in.History.Past.Refused != nil:
		t.Now = in.Entry.Template // to be judged when there is the permission
		in.Recheck = sooner(in.Recheck, permissionCheck)
	case !in.deliveredAndGone(w) && in.startsFromRecorded(t.Now):
		t.nameGiver(in, w)
	default:
		t.Reverted = in.reverted(w, t.From)
		t.nameGiver(in, w)
		if in.lostHoldTo(t.Now) && timeline.IsUsedAgain(in.History.Past.Revisions) {
			t.Hold = record.Hold{On: true, By: in.Entry.Hold.By, Undone: true}
		}
	}
	in.AwaitsStatus = in.AwaitsStatus || in.awaitsNumber(w)
	in.Template = t
	in.release(w)
	in.bar(w)
	return in
}

// startsFromRecorded reports whether new pods are created from the revision of the template on record all along, so
// nothing was reverted since: no other revision has a later number, and no rollout was aborted. During a pause only that
// shows it, because another program may compute another digest of the template.
func (in Observation) startsFromRecorded(now record.Template) bool {
	known := in.Entry.Template
	return known.Made && !known.IsStopped(now) && slices.ContainsFunc(in.History.Past.Revisions, func(r timeline.Revision) bool { return r.Current && r.Number == known.Number })
}

// awaitsNumber reports whether the workload's controller is about to report the template's
// revision number: it has already reported that of a later template, or the Deployment is
// paused, where the controller reports first that it has observed the template, and then the
// number.
func (in Observation) awaitsNumber(w *kube.Workload) bool {
	known := in.Entry.Template
	if w.Status.Paused {
		return w.Revision > 0 && known.IsOther(w.Template())
	}
	return !w.Status.Observed && known.Number > 0 && known.Number < w.Revision
}

// needsPast reports whether revisions have to be read before the workload can be judged.
func needsPast(w *kube.Workload, in Observation) bool {
	_, open := in.compare(w)
	return open && w.Status.Observed
}

// compare compares the workload's template with the one on record. Only revisions show which
// inputs were reverted (open) when a hold's annotation disappeared, or when another writer
// changed the template and the record lists which revisions came before an input.
func (in Observation) compare(w *kube.Workload) (t Template, open bool) {
	known := in.Entry.Template
	t = Template{Now: w.Template(), Reverted: in.backOnRecord(), From: in.origins(w), Hold: in.undoneHold()}
	changed := known.IsReplacedBy(t.Now)
	switch {
	case t.Now.IsOlder(known):
		t.Now = known // the cache doesn't contain our own patch yet
	case w.Status.Observed && !w.Status.Paused || w.Revision == 0:
	case known.IsOther(t.Now):
		t.Now.Number = w.Revision + 1 // the one that the controller is about to create, or creates after the pause
	case t.Now.Number <= known.Number:
		t.Now.Number, t.Now.Made = known.Number, known.Made
	}
	changed = changed || known.IsStopped(t.Now)
	switch {
	case in.History.MarksOnly:
		t.Now, t.Reverted = record.Template{}, in.backByMarks()
	case changed && w.RolledOutAt.After(in.Entry.RolledOutAt) && !w.Status.Aborted:
		// A patch of ours that isn't on record, or a user's "lockstep roll".
		t.Reverted = map[input.ID]string{}
	case in.deliveredAndGone(w), in.lostHoldTo(t.Now):
		return t, true
	case changed:
		return t, in.hasOrigins() || in.deliveredBefore() || t.lacksGiver()
	}
	return t, false
}

// lacksGiver reports whether only the revisions show which revision another rollout made
// current: the workload is of a kind whose status doesn't name it.
func (t Template) lacksGiver() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(t.From)), timeline.Origin.IsTime)
}

// nameGiver names the revision that delivered each input: the current one, unless the
// revisions show an earlier one.
func (t Template) nameGiver(in Observation, w *kube.Workload) {
	revisions := in.History.Past.Revisions
	current := slices.IndexFunc(revisions, func(r timeline.Revision) bool { return r.Current })
	for _, f := range in.Findings {
		from, given := t.From[f.ID]
		switch {
		case isDeliveredAndGone(w, f), f.Reason == input.DeliveredBefore && w.Revision > 0:
			t.From[f.ID] = in.deliveredAfter(f, from)
		case given && current >= 0:
			t.From[f.ID] = from.By(revisions[current].Name)
		}
	}
}

// backOnRecord are the inputs that are on record as reverted.
func (in Observation) backOnRecord() map[input.ID]string {
	back := map[input.ID]string{}
	for id, given := range in.Entry.Inputs {
		if given.RevertedTo != "" {
			back[id] = given.RevertedTo
		}
	}
	return back
}

// backByMarks are the inputs that the families report as undone, judged by the template's
// marks.
func (in Observation) backByMarks() map[input.ID]string {
	back := map[input.ID]string{}
	for _, f := range in.Findings {
		if f.Reason == input.Undone {
			back[f.ID] = earlierRevision
		}
	}
	return back
}

// hasOrigins reports whether the record lists where any input came from. Without that, a
// revert can't be detected.
func (in Observation) hasOrigins() bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return in.Entry.Inputs[f.ID].From != "" })
}

// awaitsRevision reports whether another rollout that hasn't begun delivers an input: a
// template that is changed back before that delivers nothing. For a patch that isn't on
// record, only its revision shows what came before.
func (in Observation) awaitsRevision(w *kube.Workload) bool {
	return !w.Status.Observed && slices.ContainsFunc(in.Findings, func(f input.Finding) bool {
		return f.Reason == input.DeliveredByRollout && w.Replaced != "" || f.Reason == input.DeliveredBefore
	})
}

// deliveredAndGone reports whether an input was delivered, and pods are created from
// another revision than the one that delivered it.
func (in Observation) deliveredAndGone(w *kube.Workload) bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return isDeliveredAndGone(w, f) })
}

// isDeliveredAndGone: a revision shows that our own rollout delivered the input, and the
// template doesn't; or the rollout, ours or another writer's, was aborted before Lockstep
// saw it.
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

// reverted checks every delivered input against the revisions.
func (in Observation) reverted(w *kube.Workload, origins map[input.ID]timeline.Origin) map[input.ID]string {
	back := map[input.ID]string{}
	for _, f := range in.Findings {
		given := in.Entry.Inputs[f.ID]
		from, shows := given.From, given.Mark()
		if f.Current == f.Delivered {
			shows = f.Shows
		}
		if isDeliveredAndGone(w, f) {
			from, shows = in.deliveredAfter(f, origins[f.ID]), f.Shows
		}
		to, is := from.Reverted(f.ID, shows, in.History.Past.Revisions)
		if is && (f.Reason != input.DeliveredByRollout || !given.HadBefore(f.Current, in.History.Past.Revisions)) {
			back[f.ID] = to
		}
	}
	return back
}

// deliveredBefore reports whether a revision shows that an input was delivered.
func (in Observation) deliveredBefore() bool {
	return slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Reason == input.DeliveredBefore })
}

// deliveredAfter is the origin of an input that our own rollout delivered: the first use of
// a revision that shows it, after the last one on record, or the newest such revision where
// no number is known. No revision shows an input that another writer's rollout delivered.
func (in Observation) deliveredAfter(f input.Finding, from timeline.Origin) timeline.Origin {
	if f.Reason == input.DeliveredByRollout {
		return from
	}
	var newest timeline.Revision
	var first int64
	for _, r := range in.History.Past.Revisions {
		if !r.Shown.Show(f.ID, f.Shows) {
			continue
		}
		if r.Number > newest.Number || r.Created.After(newest.Created) {
			newest = r
		}
		if n := r.FirstAfter(in.Entry.Accounted); n > 0 && (first == 0 || n < first) {
			first = n
		}
	}
	if first == 0 {
		return newest.Before()
	}
	return timeline.AfterNumber(first - 1)
}

// origins returns which revisions the workload had before another rollout, or a patch
// that isn't on record, delivered an input.
func (in Observation) origins(w *kube.Workload) map[input.ID]timeline.Origin {
	from := map[input.ID]timeline.Origin{}
	for _, f := range in.Findings {
		switch {
		case (f.Reason == input.DeliveredByRollout || f.Reason == input.NewBasis) && w.Borrows == kube.Key{}:
			// A template that uses other keys has loaded it too.
			from[f.ID] = in.replaced(w, f).By(w.Status.UpdateRevision)
		case f.Reason == input.DeliveredByRollout, f.Reason == input.DeliveredBefore:
			from[f.ID] = w.BeforeLast()
		}
	}
	return from
}

// replaced returns which revisions the workload had before the template that loaded the input. For a
// template that our own patch created, the record contains it. If no watch saw the template, only its
// number or its time shows it: since the last template that was seen, there may have been others whose pods loaded
// another content. If the content is older than all of them, they loaded it too, and the last one seen counts.
func (in Observation) replaced(w *kube.Workload, f input.Finding) timeline.Origin {
	known, own := in.Entry.Template, !w.RolledOutAt.IsZero() && w.RolledOutAt.Equal(in.Entry.RolledOutAt)
	written := w.TemplateWritten
	switch {
	case w.Replaced != "" && (written.Exact() || written.After(timeline.WrittenUpTo(f.ResourceVersion))):
		return w.Replaced
	case own && known.Number > 0 && known.Sum == w.Template().Sum:
		return timeline.AfterNumber(known.Number - 1)
	case w.Replaced == "" && !known.IsReplacedBy(w.Template()):
		return ""
	case w.Revision > 0:
		return w.BeforeLast()
	}
	return cmp.Or(timeline.AfterTime(w.TemplateAt), w.Replaced) // all but the one that delivers it are older
}

// isReleased reports whether a user requested a release that wasn't carried out yet.
func (in Observation) isReleased() bool { return in.Intent.Release > in.Entry.Released }

// release ends the reverts that a user has accepted. A release from before the template
// was written covers only reverts on record: an undo may have restored its annotation.
func (in *Observation) release(w *kube.Workload) {
	if !in.isReleased() || in.History.NotActed {
		return
	}
	accepted, isEarlier := maps.Clone(in.Template.Reverted), w.HasTemplateSince(in.Intent.Release)
	if isEarlier {
		maps.DeleteFunc(accepted, func(id input.ID, _ string) bool { return in.Entry.Inputs[id].RevertedTo == "" })
	}
	if !isEarlier || in.Entry.Hold.Undone {
		in.Template.Hold = record.Hold{}
	}
	in.Template.Released = sorting.Keys(accepted, func(a, b input.ID) int { return strings.Compare(a.String(), b.String()) })
	maps.DeleteFunc(in.Template.Reverted, func(id input.ID, _ string) bool { return slices.Contains(in.Template.Released, id) })
}

// bar bars the reverted inputs. A rollout doesn't revert the inputs that it delivers
// itself, even when it uses an earlier revision again. Another version than the reverted
// one isn't barred. One that can't be read may be the same version, so it is. A release accepts
// what the pods run, whatever they loaded before the version on record was back.
func (in *Observation) bar(w *kube.Workload) {
	in.Findings = slices.Clone(in.Findings)
	for i, f := range in.Findings {
		if f.Reason == input.Undone {
			f.Reason = input.InStep
		}
		if f.Standing == input.Record && f.Reason != input.NewBasis && !isDeliveredAndGone(w, f) {
			delete(in.Template.Reverted, f.ID)
		}
		to, back := in.Template.Reverted[f.ID]
		accepted := f.Live && slices.Contains(in.Template.Released, f.ID)
		if (back || accepted) && f.Standing == input.Due && f.Current == f.Delivered {
			// It comes with the template, which no longer contains it. Or pods may have loaded another version in between.
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
