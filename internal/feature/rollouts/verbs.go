package rollouts

import "github.com/lockstep-dev/lockstep/internal/adapter/announce"

// Verb is what Lockstep does to a workload.
type Verb string

// The verbs.
const (
	// Ignore: the workload isn't followed, and its entry is dropped.
	Ignore Verb = "ignore"
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Remember: only the record changes.
	Remember Verb = "remember"
	// Wait: a change is due, but it isn't time yet.
	Wait Verb = "wait"
	// Hold: a change is due, and something forbids it.
	Hold Verb = announce.ActionHold
	// RollOut: the pod template is changed to the current versions.
	RollOut Verb = "roll"
	// Evict: pods that are older than the change are evicted, one at a time.
	Evict Verb = "evict"
	// Refresh: the pods are touched so the kubelets refresh their files.
	Refresh Verb = "refresh"
	// Observe: it would be rolled out, and the settings ask only for reports.
	Observe Verb = "observe"
)

// Force is how far a user overrules what prevents a rollout.
type Force int

const (
	// NoForce is for the controller: it rolls out due changes.
	NoForce Force = iota
	// ForceRollOut rolls out the workload by its template even though nothing is due, or the
	// change was reverted or is only observed. It waits for quiet and respects holds.
	ForceRollOut
	// ForceNow doesn't wait and doesn't respect holds either.
	ForceNow
)
