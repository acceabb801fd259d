package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// begins is when nothing of the workload's own is in the way of its change any more, zero when that isn't
// known: a user or another workload has to act first.
func (in Observation) begins() time.Time {
	at := in.Now
	for _, d := range in.closedGates() {
		if d.Verb != Wait || d.Reason == input.AwaitsWorkload {
			return time.Time{}
		}
		at = later(at, in.Now.Add(d.Recheck))
	}
	return at
}

// awaitsUser is why a user has to act before the workload begins, even if another gate is closed until then.
func (in Observation) awaitsUser() (why input.Reason, awaits bool) {
	for _, d := range in.closedGates() {
		if d.Verb != Wait {
			return d.Reason, true
		}
	}
	return "", false
}

// closedGates are what is in the way of the workload's change, in order.
func (in Observation) closedGates() (all []Decision) {
	s := in.situation()
	for _, gate := range gates() {
		if d, closed := gate(s); closed {
			all = append(all, d)
		}
	}
	return all
}
