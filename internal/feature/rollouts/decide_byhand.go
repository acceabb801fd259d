package rollouts

import (
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// awaitsPods: the template contains the current version. It counts as delivered when no
// pod of an older revision is left. A release is reported first.
func awaitsPods(s situation) (Decision, bool) {
	waiting := matching(s.Findings, func(f input.Finding) bool {
		return s.Entry.Inputs[f.ID].Awaits || s.Template.isRedone(f.ID, s.Entry.Inputs[f.ID], s.State.Rollout)
	})
	if len(waiting) == 0 || len(s.Template.Released) > 0 || s.Force != NoForce || len(withStanding(s.Findings, input.Due)) > 0 || revertedInWords(s.Findings) != "" {
		return Decision{}, false
	}
	if s.State.Rollout.HasOlderPods() {
		return Decision{
			Verb: Wait, Reason: input.AwaitsPods, Message: versions(waiting) + "; " + s.State.Rollout.Hand(),
			PendingSince: s.pendingSince(), AwaitsStatus: true,
		}, true
	}
	return Decision{Verb: Remember, Reason: input.Reloaded, Message: versions(waiting) + "; no pods of an older revision are left"}, true
}

// isRedone reports whether the template contains a reverted input again, or a user accepted it as it is.
// Pods take that up only when they are deleted.
func (t Template) isRedone(id input.ID, before record.Delivered, rollout health.Status) bool {
	return before.RevertedTo != "" && t.Reverted[id] == "" && rollout.RollsByHand() && rollout.HasOlderPods()
}
