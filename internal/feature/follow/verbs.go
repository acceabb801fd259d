package follow

import "github.com/lockstep-dev/lockstep/internal/adapter/announce"

// Verb is what is done to a workload.
type Verb string

// The verbs.
const (
	// Ignore: the workload is not followed; nothing of it is remembered.
	Ignore Verb = "ignore"
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Remember: only the record changes.
	Remember Verb = "remember"
	// Wait: a change is due, and it is not yet time.
	Wait Verb = "wait"
	// Hold: a change is due, and something forbids it.
	Hold Verb = announce.ActionHold
	// RollOut: the pod template is moved to the current versions.
	RollOut Verb = "move"
	// Evict: pods that are older than the change are evicted, one at a time.
	Evict Verb = "evict"
	// Refresh: the pods are touched so that the kubelets refresh their files.
	Refresh Verb = "refresh"
	// Observe: it would be moved, and the settings ask only to be told.
	Observe Verb = "observe"
)

// Force is how far a person overrules what stands in the way of a move.
type Force int

const (
	// NoForce is for the controller: it moves what is due.
	NoForce Force = iota
	// ForceRollOut moves the workload by its template although nothing is due, was reverted,
	// or is only observed. It waits for quiet and respects holds.
	ForceRollOut
	// ForceNow does not wait and does not respect holds either.
	ForceNow
)
