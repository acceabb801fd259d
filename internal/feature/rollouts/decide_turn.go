package rollouts

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// awaitsTurn: other workloads get the change first, or too many are rolling.
func awaitsTurn(s situation) (Decision, bool) {
	if s.Turn.Canary != "" {
		return s.waits(input.AwaitsFirst, s.Turn.Canary), s.Turn.Refused && s.passesGates()
	}
	return s.draft.as(Wait, input.AwaitsTurn), s.Turn.Refused && s.passesGates()
}

// awaitsOthers reports whether nothing of the workload's own is in the way of its change.
func awaitsOthers(r input.Reason) bool { return r == input.AwaitsTurn || r == input.AwaitsFirst }

// takesTurn reports whether the decision begins a rollout that is put on trial. A workload
// without pods, a CronJob and one whose pods a user replaces prove nothing, so they don't wait.
func (in Observation) takesTurn(d Decision) bool {
	begins := d.Verb == RollOut || d.Verb == Evict && d.Eviction.Begin
	return begins && in.Turn.Proves && len(changesOf(d.Due)) > 0
}

// changesOf are the changes that a rollout of the inputs delivers, each once.
func changesOf(due []input.Finding) []input.Change {
	var all []input.Change
	for _, f := range changing(due) {
		if !slices.Contains(all, f.Change) {
			all = append(all, f.Change)
		}
	}
	return all
}

// changing are the inputs that a rollout delivers a change of. An image that is restored is a repair.
func changing(due []input.Finding) []input.Finding {
	return matching(due, func(f input.Finding) bool { return !f.Change.IsZero() && f.Reason != input.PutBack })
}
