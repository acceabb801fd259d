package rollouts

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// failed is the outcome of a decision that could not be carried out.
func (o outcome) failed(in Observation) outcome {
	o.decision.PendingSince, o.decision.DelaySince = in.pendingSince(), in.situation().draft.DelaySince
	o.decision.Delivered, o.rolledOut, o.before.turn.Taken = false, kube.RolledOut{}, false
	return o
}

// remember is the entry after a decision. Inputs that the workload no longer follows are
// dropped when pods start without them. Inputs of kinds that no family here knows are
// kept. A pending change keeps the version that was last delivered.
func remember(e record.Entry, o outcome) record.Entry {
	next := without(e, o.kinds, o.unrolled)
	next.PendingSince, next.DelaySince, next.Decision = o.decision.PendingSince, o.decision.DelaySince, o.recorded
	next.Template, next.Released, next.Hold = o.template.Now, max(e.Released, o.release), o.hold
	next.Searched, next.GoneAt, next.Left, next.TakenOver = o.searched, time.Time{}, false, false
	if !o.rolledOut.At.IsZero() || o.before.startsFrom != e.Inherited {
		next.Inherited = ""
	}
	switch {
	case !o.rolledOut.At.IsZero():
		next.RolledOutAt, next.AsOf = o.rolledOut.At, time.Time{}
		if number := o.template.Now.Number; (next.Template != record.Template{}) {
			next.Template = o.rolledOut.Template
			if number > 0 {
				next.Template.Number = number + 1
			}
		}
		next.Accounted = next.Template.Number
	case o.takesAllIntoAccount(e):
		next.RolledOutAt = later(e.RolledOutAt, o.before.rolledOutAt)
		next.AsOf, next.Accounted = later(e.AsOf, o.before.writtenAt), next.Template.Number
	case o.template.Now.Sum != e.Template.Sum:
		// A revision that another writer uses again wasn't created for the versions that it
		// shows, even when changes are still pending.
		next.Accounted = max(e.Accounted, next.Template.Number)
	}
	if !slices.Contains([]Verb{Evict, Hold, Wait}, o.decision.Verb) || o.decision.Delivered {
		// A hold in the middle of a series doesn't restart the series. If the content is
		// changed back, only this entry shows that pods have loaded a version in between.
		next.Eviction = record.Eviction{}
	}
	next.Turn = o.turn(e)
	for _, f := range o.findings {
		given, known := o.delivered(e, f)
		if known {
			next.Inputs[f.ID] = given
		}
	}
	return next
}

// takesAllIntoAccount reports whether the entry has caught up with the workload: it
// records a version without a patch, or finds a patch, a template or a revision that it
// doesn't know, and no change is pending for which earlier writes could still matter. For
// a new entry no earlier write matters, nor for a version that is due although the entry lists it: no
// earlier patch was the first to deliver it.
func (o outcome) takesAllIntoAccount(e record.Entry) bool {
	if e.RolledOutAt.IsZero() && e.AsOf.IsZero() {
		return true
	}
	news := o.before.rolledOutAt.After(e.RolledOutAt) || !o.template.Now.IsSame(e.Template)
	for _, f := range o.findings {
		switch {
		case f.Reason == input.Unreadable, f.Reason == input.Unresolved, f.Standing == input.Due && !o.delivers(f) && !isDueAgain(f, e.Inputs[f.ID]):
			return false
		case f.Standing != input.Settled:
			news = true
		}
	}
	return news
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// origin returns which revisions the workload had before a rollout delivered the input,
// empty when no rollout did.
func (o outcome) origin(f input.Finding) timeline.Origin {
	if o.decision.Verb == RollOut && o.delivers(f) {
		return o.from
	}
	return o.template.From[f.ID]
}

// originAfter is the origin of an input that was delivered before. Measured in another
// way, it is still the version that was delivered.
func (o outcome) originAfter(before record.Delivered, f input.Finding) timeline.Origin {
	from := o.origin(f)
	if f.Reason == input.NewBasis && (from == "" || o.template.Reverted[f.ID] != "") {
		return before.From
	}
	return from
}

// isUnknown reports whether pods may run another version of a due input than the one on
// record: new pods load the current version even though the record already lists it as
// delivered, or the family doesn't know which version they run. A reverted version is known:
// Lockstep must not deliver it again.
func (o outcome) isUnknown(f input.Finding, given record.Delivered) bool {
	if f.Delivered == f.Current.Unknown() && o.template.Reverted[f.ID] == "" {
		return true
	}
	return isDueAgain(f, given)
}

// isDueAgain reports whether an input that pods load is due although its current version is on record as delivered.
func isDueAgain(f input.Finding, given record.Delivered) bool {
	return f.Live && given.Version == f.Current
}

// isBetween reports whether pods started while another version of the input was due, or without it, and so may not have
// loaded the version on record.
func (o outcome) isBetween(e record.Entry, f input.Finding) bool {
	before := e.Inputs[f.ID].Between
	switch {
	case o.countsAsDelivered(f):
		return false
	case o.differsForNew(f):
		return before || o.rollout.StartsPods()
	case slices.Contains(o.template.Released, f.ID): // a user accepts what they run
		return false
	}
	return before
}

// countsAsDelivered reports whether the record lists the input's current version after the decision, because pods load it.
func (o outcome) countsAsDelivered(f input.Finding) bool {
	return f.Standing == input.Record || o.delivers(f) || o.loads(f)
}

// differsForNew reports whether a pod that starts now loads another version of the input than the one on record, or
// runs without it.
func (o outcome) differsForNew(f input.Finding) bool {
	return f.Live && !o.countsAsDelivered(f) && (f.Standing == input.Due || f.Skipped)
}

// awaitsStart reports whether the next start of a pod has to be noticed: the pod loads another version than the one on
// record, and the record doesn't say yet that one did. The status shows that only if it counts the pods.
func (in Observation) awaitsStart(d Decision) bool {
	o := outcome{decision: d, findings: in.Findings, rollout: in.State.Rollout}
	return o.rollout.Counted && slices.ContainsFunc(o.findings, func(f input.Finding) bool { return o.differsForNew(f) && !o.isBetween(in.Entry, f) })
}

// delivered is the entry of one input. An input that is due at first sight, or whose version
// in the pods isn't known, is recorded with unknown content, so it stays due. An input that
// comes with the template is due by the version in the template.
func (o outcome) delivered(e record.Entry, f input.Finding) (record.Delivered, bool) {
	given, known := e.Inputs[f.ID]
	if f.Standing == input.Record || f.Standing == input.Due && o.delivers(f) {
		from, was := o.originAfter(given, f), given.Version
		given.Take(f.Current)
		given.From = from
		if from != "" && was != f.Current {
			given.Was = was.Short()
		}
		known = true
	} else if f.Standing == input.Due && (!known || o.isUnknown(f, given)) {
		given.Take(f.Current.Unknown())
		known = true
	}
	given.RevertedTo = o.template.Reverted[f.ID]
	if o.delivers(f) || f.Live && o.decision.Verb == RollOut && o.decision.Delivered {
		given.RevertedTo = "" // a later revision is current; it loads every live input
	}
	given.Between = o.isBetween(e, f)
	given.Awaits = o.awaits(e, f, given)
	given.Stage = o.stage(e, f, given.Stage)
	given.Trial, given.Mixed = o.trial(f, e.Inputs[f.ID])
	given.Memo = f.Notes.Memo
	if o.delivers(f) {
		given.Memo = f.Notes.MemoIfDelivered
	}
	if given.Version == f.Current {
		given.Sealed = f.Sealed
	}
	switch {
	case o.loads(f) && f.Reason == input.Missing:
		given.Take(f.Current) // the new pods start without it
	case known && f.Reason == input.Missing && o.before.rolledOutAt.After(e.RolledOutAt) && o.before.template[f.ID] != given.Mark():
		given.Take(given.Version.Unknown()) // a patch that isn't on record delivered another one
	}
	given.Shown = o.shown(f, given.Shown, known)
	given.Due, given.Waits = o.due(e.Inputs[f.ID], f)
	return given, known
}

// due is the version that stays due, and since when it has waited for other workloads.
func (o outcome) due(before record.Delivered, f input.Finding) (version string, waits time.Time) {
	switch {
	case o.stillWaits:
		return before.Due, before.Waits
	case f.Standing != input.Due || o.delivers(f):
		return "", time.Time{}
	case before.Due == f.Current.Short() && !before.Waits.IsZero():
		return before.Due, before.Waits
	case awaitsOthers(o.recorded.Reason):
		waits = o.recorded.Since.UTC().Round(0) // entries are compared as written
	}
	return f.Current.Short(), waits
}

// shown is the mark that our own template shows for the input.
func (o outcome) shown(f input.Finding, before input.Mark, known bool) input.Mark {
	switch {
	case o.loads(f) || f.Reason == input.DeliveredBefore:
		return f.Shows
	case known && f.Shows != input.Mark{} && o.before.template[f.ID] == f.Shows:
		return f.Shows // whichever writer set it, the template shows the current version
	case f.Standing == input.Record && o.before.template[f.ID] != before:
		return input.Mark{} // another writer made this template; its mark isn't ours to compare
	}
	return before
}
