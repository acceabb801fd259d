package rollouts

import "github.com/lockstep-dev/lockstep/internal/core/input"

// byTemplate delivers a change with one patch of the pod template. The workload's controller
// then replaces the pods, or an operator does.
type byTemplate struct{}

func (byTemplate) changesTemplate() bool { return true }

// objects never objects: a new template can deliver every input.
func (byTemplate) objects(situation) (Decision, bool) { return Decision{}, false }

func (byTemplate) decide(s situation) Decision {
	d := s.delivered(s.draft.as(RollOut, input.Reloaded))
	if s.State.Rollout.RollsByHand() {
		d.Reason, d.PendingSince, d.AwaitsStatus = input.AwaitsPods, s.draft.PendingSince, true
		d.Message += "; " + s.State.Rollout.Hand()
	}
	for _, f := range d.Due {
		if f.Why != "" {
			d.Message += "; " + f.Why
		}
		if f.Reason == input.PutBack {
			d.Reason = input.PutBack
		}
	}
	return d
}
