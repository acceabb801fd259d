package rollouts

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
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
func (o outcome) awaits(f input.Finding, given, before record.Delivered) bool {
	switch {
	case given.RevertedTo != "":
		return false
	case o.decision.Verb == RollOut && o.delivers(f):
		return o.rollout.RollsByHand()
	case f.Reason == input.DeliveredByRollout:
		return o.rollout.RollsByHand() && o.rollout.HasOlderPods()
	}
	return given.Awaits && o.rollout.HasOlderPods() || o.template.isRedone(f.ID, before, o.rollout)
}
