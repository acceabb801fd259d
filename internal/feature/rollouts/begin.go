package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// begins is when nothing of the workload's own is in the way of its change any more, zero when that isn't
// known: a user or another workload has to act first.
func (in Observation) begins() time.Time {
	s, at := in.situation(), in.Now
	for _, gate := range gates() {
		d, closed := gate(s)
		switch {
		case !closed:
		case d.Verb != Wait, d.Reason == input.AwaitsWorkload:
			return time.Time{}
		default:
			at = later(at, in.Now.Add(d.Recheck))
		}
	}
	return at
}
