// Package pods knows what the strategies that work on pods have to know of them, and
// which pod of a workload is evicted next.
package pods

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Pod is one pod of a workload.
type Pod struct {
	Namespace, Name, UID string
	Created              time.Time
	Ready                bool
	Terminating          bool
	// Shown are the versions that the pod shows.
	Shown input.Shown
}

// Running is how many pods are not on their way out.
func Running(all []Pod) int {
	n := 0
	for _, p := range all {
		if !p.Terminating {
			n++
		}
	}
	return n
}

// NextEviction chooses the next pod: one that is not younger than the decision,
// rather one that does not work anyway. It chooses none while an earlier step
// has not come to its end, and is done when no such pod is left.
func NextEviction(all []Pod, replicas int, since time.Time) (victim *Pod, done bool) {
	ready, moving := 0, false
	done = true
	for i, p := range all {
		younger := p.Created.After(since)
		done = done && younger
		moving = moving || p.Terminating || younger && !p.Ready
		if p.Ready && !p.Terminating {
			ready++
		}
		if !younger && (victim == nil || victim.Ready && !p.Ready) {
			victim = &all[i]
		}
	}
	if done || moving || victim.Ready && ready < replicas {
		return nil, done
	}
	return victim, false
}
