package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
)

// evictionCheck is how often a series of evictions checks whether the workload is
// available again.
const evictionCheck = 2 * time.Second

// byEviction delivers a change by evicting the pods that are older, one after the other.
type byEviction struct{ onPods }

// decide returns the next step. The series is on record before the first pod is evicted, so
// a restarted controller continues it. The series is over when no older pod is left.
func (byEviction) decide(s situation) Decision {
	d := s.draft.as(Evict, input.Evicting)
	d.Recheck = evictionCheck
	d.Eviction.For = s.order(d).Shown(s.State.Shown).String()
	if s.Entry.Eviction.For != d.Eviction.For || s.Entry.Eviction.Since.IsZero() {
		d.Eviction.Begin = true
		if s.State.Replicas == 0 {
			// Without it the gap between a pod and its successor would go unnoticed.
			d.Eviction.Pods = pods.Running(s.Pods.All)
		}
		return d
	}
	if s.Pods.Problem != nil {
		return d
	}
	victim, done := pods.NextEviction(s.Pods.All, max(s.State.Replicas, s.Entry.Eviction.Pods), s.Entry.Eviction.Since, s.Entry.Turn.Healthy)
	if done {
		d.Recheck, d.Reason = 0, input.Evicted
		return s.delivered(d)
	}
	d.Eviction.Victim = victim
	return d
}
