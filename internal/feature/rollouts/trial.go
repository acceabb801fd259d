package rollouts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// trial is the template by which our own patch delivered an input that comes with the
// template, until its family has seen how that rollout ended. Mixed is true when a
// failure may have another cause: the same patch or a later one delivered live inputs, or
// the workload wasn't healthy before.
func (o outcome) trial(f input.Finding, before record.Delivered) (template string, mixed bool) {
	if f.Live {
		return "", false
	}
	if f.Notes.Proven {
		before.Trial, before.Mixed = "", false
	}
	rolledOut := o.decision.Verb == RollOut && o.decision.Delivered
	if !rolledOut || !o.delivers(f) && before.Trial == "" {
		return before.Trial, before.Mixed
	}
	live := slices.ContainsFunc(o.decision.Due, func(f input.Finding) bool { return f.Live })
	return o.rolledOut.Template.Sum, live || before.Mixed || !o.healthy && f.Reason != input.PutBack
}

// awaits reports whether pods of an older revision keep the workload from running the
// input. That begins with a template that contains it, ours or another writer's, and ends
// with the last of those pods.
func (o outcome) awaits(e record.Entry, f input.Finding, given record.Delivered) bool {
	before := e.Inputs[f.ID]
	switch {
	case given.RevertedTo != "":
		return false
	case o.decision.Verb == RollOut && o.delivers(f):
		return o.rollout.RollsByHand()
	case f.Reason == input.NewBasis && before.Version.SameKeys(f.Current):
		return before.Awaits && o.rollout.HasOlderPods() // only the algorithm is another one
	case f.Reason == input.Missing, f.Reason == input.Baseline && !e.IsKnown():
	case f.Standing == input.Record:
		return o.rollout.RollsByHand() && o.rollout.HasOlderPods()
	}
	return given.Awaits && o.rollout.HasOlderPods() || o.template.isRedone(f.ID, before, o.rollout)
}

// turn is the rollout on trial after the decision: the one that it began, or the earlier one,
// unless its end is known. While a change is pending, only Healthy is on record, for a process
// that finds the patch and not the record of it: the workload was available since the change was first seen.
func (o outcome) turn(e record.Entry) spread.Turn {
	before, now := e.Turn, o.before.turn
	switch {
	case !now.Tracked:
		return before
	case now.Taken:
		return spread.Turn{Template: cmp.Or(digestOf(o.rolledOut.Template.Sum), now.Template), Healthy: now.Healthy}
	case !o.rolledOut.At.IsZero():
		return spread.Turn{}
	case o.findsTrial():
		return spread.Turn{Template: now.Template, Healthy: wasHealthy(e, now.Serves)}
	}
	switch now.End {
	case spread.Passed, spread.Over:
		before = spread.Turn{}
	case spread.Failing, spread.Freed:
		before.Freed = true
	case spread.Open:
	}
	if before.Template == "" {
		since := e.PendingSince.IsZero() || before.Healthy || now.Healthy // available since then, or for long enough
		before.Healthy = now.Able && since && !o.decision.PendingSince.IsZero()
	}
	return before
}

// wasHealthy reports whether a workload was healthy before a patch that isn't on record. If the change
// isn't on record either, pods that serve while the rollout goes on served before.
func wasHealthy(e record.Entry, serves bool) bool {
	return e.Turn.Healthy && !e.Turn.Freed || e.PendingSince.IsZero() && serves
}

// begun is the entry with the turn of a series of evictions that begins. The next process has to
// know both or neither.
func (o outcome) begun(e record.Entry) record.Entry {
	e = e.Clone()
	e.Turn = o.turn(e)
	return e
}

// stage is how the rollout that delivered an input stands. A series of evictions is on trial once
// more when its last pod is replaced: these pods have to stay available.
func (o outcome) stage(e record.Entry, f input.Finding, before string) string {
	now := o.before.turn
	switch {
	case !now.Tracked:
		return before
	case now.Taken && o.delivers(f), o.isFoundOnTrial(f), before == record.StageRolling && o.findsTrial():
		return record.StageRolling
	case o.decision.Verb == Evict && o.delivers(f) && e.Turn.Template != "":
		return record.StageRolling
	case before == record.StageRolling && now.End == spread.Passed && e.Turn.Healthy:
		return record.StageProven
	case before == record.StageRolling && ((now.End == spread.Over || now.End == spread.Passed) || !o.rolledOut.At.IsZero() && !now.Taken):
		return ""
	}
	return before
}

// isFoundOnTrial reports whether the template contains an input by a patch of ours that isn't on
// record, because the process ended before that.
func (o outcome) isFoundOnTrial(f input.Finding) bool {
	return f.Reason == input.DeliveredBefore && f.Standing == input.Record && o.before.turn.Proves && o.before.template[f.ID] == f.Shows
}

// findsTrial reports whether the rollout on trial began with a patch that isn't on record. What an earlier one
// delivered is on trial with it.
func (o outcome) findsTrial() bool { return slices.ContainsFunc(o.findings, o.isFoundOnTrial) }

// digestOf is the digest of a template, without the revision that pods are created from instead.
func digestOf(sum string) string {
	digest, _, _ := strings.Cut(sum, record.Instead)
	return digest
}
