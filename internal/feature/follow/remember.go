package follow

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// outcome is what a decision left behind, once it was carried out.
type outcome struct {
	decision Decision
	findings []input.Finding
	// kinds are those of the families that were asked.
	kinds []input.Kind
	// searched are the patterns by which they looked for inputs.
	searched []string
	// template is what is known of the pod template, and unrolled is true when the pods are
	// made from another; release is the last release that a person asked for,
	// and hold the hold that counts.
	template Template
	unrolled bool
	release  int64
	hold     record.Hold
	// moved is what the API server said of the patch, zero when there was none, and from
	// tells which revisions the workload had before it.
	moved kube.Moved
	from  timeline.Origin
	// rollout is what the workload said of its rollout, and healthy is true when that was
	// done.
	rollout health.Status
	healthy bool
	// told is what people can read of the decision on record.
	told record.Decision
	// before is the workload that was decided on.
	before before
}

// before is what a workload shows of its history.
type before struct {
	// template is what the pod template shows.
	template input.Shown
	// revision is the number of the current one.
	revision int64
	// writtenAt is when the workload was last written by anybody, movedAt when we
	// wrote what the template shows, by the API server's clock.
	writtenAt, movedAt time.Time
	// startsFrom is the template that pods were made from.
	startsFrom string
}

// failed is the outcome when the decision could not be carried out.
func (o outcome) failed(in Input) outcome {
	o.decision.PendingSince, o.decision.DelaySince = in.pendingSince(), in.situation().draft.DelaySince
	o.decision.Delivered, o.moved = false, kube.Moved{}
	return o
}

// moves reports whether the decision moves an input.
func (o outcome) moves(f input.Finding) bool {
	return contains(o.decision.Moves, f.ID)
}

// remember is the entry after a decision. Inputs that the workload no longer
// follows are dropped when pods start without them, and those of kinds that no family
// knows are kept; a pending change keeps what was last given.
func remember(e record.Entry, o outcome) record.Entry {
	next := without(e, o.kinds, o.unrolled)
	next.PendingSince, next.DelaySince, next.Decision = o.decision.PendingSince, o.decision.DelaySince, o.told
	next.Template, next.Released, next.Hold = o.template.Now, max(e.Released, o.release), o.hold
	next.Searched, next.GoneAt, next.Left, next.TakenOver = o.searched, time.Time{}, false, false
	if !o.moved.At.IsZero() || o.before.startsFrom != e.Inherited {
		next.Inherited = ""
	}
	switch {
	case !o.moved.At.IsZero():
		next.MovedAt, next.AsOf, next.MovedFrom = o.moved.At, time.Time{}, o.before.revision
		if (next.Template != record.Template{}) {
			next.Template = o.moved.Template
		}
	case o.takesAllIntoAccount(e):
		next.MovedAt = later(e.MovedAt, o.before.movedAt)
		next.AsOf, next.MovedFrom = later(e.AsOf, o.before.writtenAt), o.before.revision
	case o.template.Now != e.Template:
		// A revision that another writer uses again was not made for what it shows, whatever
		// is left open.
		next.MovedFrom = max(e.MovedFrom, o.before.revision)
	}
	if !slices.Contains([]Verb{Evict, Hold, Wait}, o.decision.Verb) || o.decision.Delivered {
		// A hold in the middle of a series does not begin it again; and should the content go
		// back, only this tells that pods have loaded what was between.
		next.EvictFor, next.EvictSince, next.EvictPods = "", time.Time{}, 0
	}
	for _, f := range o.findings {
		given, known := o.given(e, f)
		if known {
			next.Inputs[f.ID] = given
		}
	}
	return next
}

// room is how much the entry may take after the decision: what the workload follows, its
// hold, and inputs that no family here knows.
func (in Input) room() int {
	next := without(in.Entry, in.Kinds, in.Unrolled)
	next.Hold = in.holdOnRecord()
	for _, f := range in.Findings {
		next.Inputs[f.ID] = in.Entry.Inputs[f.ID]
	}
	return next.Room()
}

// without is a copy of the entry without inputs of the kinds, unless they are all kept.
func without(e record.Entry, kinds []input.Kind, kept bool) record.Entry {
	next := e.Clone()
	if !kept {
		maps.DeleteFunc(next.Inputs, func(id input.ID, _ record.Given) bool { return slices.Contains(kinds, id.Kind) })
	}
	return next
}

// takesAllIntoAccount reports whether the entry has caught up with the workload: it
// takes a version without a patch, or finds a patch, a template or a revision that it does
// not know, and leaves nothing open for which what was written before now could still
// matter. For one that begins now, nothing that was written before does.
func (o outcome) takesAllIntoAccount(e record.Entry) bool {
	if e.MovedAt.IsZero() && e.AsOf.IsZero() {
		return true
	}
	news := o.before.movedAt.After(e.MovedAt) || o.template.Now != e.Template || o.missedRevisions(e)
	for _, f := range o.findings {
		switch {
		case f.Reason == input.Unreadable, f.Reason == input.Unresolved, f.Standing == input.Due && !o.delivers(f):
			return false
		case f.Reason == input.Missing && f.Standing == input.Settled:
			return false // what the patch gave of it shows when it is back
		case f.Standing != input.Settled:
			news = true
		}
	}
	return news
}

// missedRevisions reports whether the workload has had more revisions than the one that our
// patch on record led to. One that came and went may be that of a patch which is not on
// record: should what it gave exist again, pods do not have it.
func (o outcome) missedRevisions(e record.Entry) bool {
	return e.MovedFrom > 0 && o.before.revision > e.MovedFrom+1
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// delivers reports whether the decision gives the workload an input that is due.
func (o outcome) delivers(f input.Finding) bool {
	return o.decision.Delivered && o.moves(f)
}

// origin tells which revisions the workload had before it was given the input, as far
// as a rollout did that.
func (o outcome) origin(f input.Finding) timeline.Origin {
	if o.decision.Verb == Move && o.delivers(f) {
		return o.from
	}
	return o.template.From[f.ID]
}

// originAfter is the origin of an input that was given before. Measured in another way, it
// is the same that was given.
func (o outcome) originAfter(before record.Given, f input.Finding) timeline.Origin {
	from := o.origin(f)
	if f.Reason == input.NewBasis && (from == "" || o.template.Back[f.ID] != "") {
		return before.From
	}
	return from
}

// isUnknown reports whether the pods may have another version of an input that is due than
// the one on record: they load it although it is what was given, or its family does not know
// what they have. What was taken back is known: it must not be given again.
func (o outcome) isUnknown(f input.Finding, given record.Given) bool {
	if f.Given == f.Current.Unknown() && o.template.Back[f.ID] == "" {
		return true
	}
	return f.Live && given.Version == f.Current
}

// given is the entry of one input. One that is due at first sight, or of which it is not
// known what the pods have, is on record as one of unknown content, so that it stays due.
// What comes with the template is due by what that has.
func (o outcome) given(e record.Entry, f input.Finding) (record.Given, bool) {
	given, known := e.Inputs[f.ID]
	if !f.Rebased.IsZero() {
		given.Version = f.Rebased
	}
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
	given.Back = o.template.Back[f.ID]
	if o.delivers(f) || f.Live && o.decision.Verb == Move && o.decision.Delivered {
		given.Back = "" // a later revision is current; it loads every live input
	}
	given.Awaits = o.awaits(f, given, e.Inputs[f.ID])
	given.Trial, given.Mixed = o.trial(f, e.Inputs[f.ID])
	given.Memo = f.Memo
	if o.delivers(f) {
		given.Memo = f.MemoIfGiven
	}
	if given.Version == f.Current {
		given.Sealed = f.Sealed
	}
	if o.loads(f) && f.Reason == input.Missing {
		given.Take(f.Current) // the new pods start without it
	}
	given.Shown = o.shown(f, given.Shown, known)
	given.Due = ""
	if f.Standing == input.Due && !o.delivers(f) {
		given.Due = f.Current.Short()
	}
	return given, known
}

// loads reports whether the decision's patch starts pods that load the input as it is.
func (o outcome) loads(f input.Finding) bool {
	return o.decision.Verb == Move && o.decision.Delivered && (f.Live || o.moves(f))
}

// shown is what a template of ours shows of the input.
func (o outcome) shown(f input.Finding, before input.Mark, known bool) input.Mark {
	switch {
	case o.loads(f) || f.Reason == input.DeliveredBefore:
		return f.Shows
	case known && f.Shows != input.Mark{} && o.before.template[f.ID] == f.Shows:
		return f.Shows // whoever wrote it, the template shows what exists
	case f.Standing == input.Record && o.before.template[f.ID] != before:
		return input.Mark{} // another writer made this template; what it shows is not ours to compare
	}
	return before
}
