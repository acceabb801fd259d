// Package pods defines a pod as far as the strategies that work on pods need it, and
// decides which pod of a workload is evicted next:
//
//	begin  -- the series is on record -->  evict one older pod  <--+
//	  ↑                                      |                     | its successor is ready
//	  | another version                      ↓                     |
//	  +-----------------------------------  wait  -----------------+
//	                                         | no older pod is left
//	                                         ↓
//	                                        done
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
	// Revision is the name of the revision that the pod was made from, or its end; empty when unknown.
	Revision string
	// Accepted is when a node accepted it, Started when the first of its containers started that
	// weren't started again since; zero before.
	Accepted, Started time.Time
	// Version is its resource version.
	Version uint64
	// Shown are the marks that the pod shows.
	Shown input.Marks
}

// Running is how many pods are not terminating.
func Running(all []Pod) int {
	n := 0
	for _, p := range all {
		if !p.Terminating {
			n++
		}
	}
	return n
}

// NextEviction chooses the next pod: one that isn't younger than the decision, preferably
// one that isn't ready. It chooses none while an earlier step hasn't finished, and is
// done when no such pod is left. On trial, the last step has to finish too.
func NextEviction(all []Pod, replicas int, since time.Time, onTrial bool) (victim *Pod, done bool) {
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
		return nil, done && (!onTrial || !moving && ready >= replicas)
	}
	return victim, false
}
