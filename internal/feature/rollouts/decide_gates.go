package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// afterCheck is how soon to check whether the workload that goes first has finished. Its end
// wakes those that wait; the check is for an end that nobody reports.
const afterCheck = time.Minute

// stoppedByOperator: an operator stopped every automatic change, even restoring an image and
// the next step of a series of evictions. A user who rolls out a workload by hand decides.
func stoppedByOperator(s situation) (Decision, bool) {
	return s.held(input.Stopped, "stopped by an operator"+quoted(s.Gates.StoppedBy)), s.Gates.Stopped && s.Force == NoForce
}

// outsideWindow: changes wait for the maintenance window, and are delivered together when it
// opens.
func outsideWindow(s situation) (Decision, bool) {
	window := s.Gates.Window
	d := s.waits(input.AwaitsWindow, "the maintenance window "+window.On+" is closed"+quoted(window.Text))
	d.Recheck = window.Opens.Sub(s.Now)
	return d, d.Recheck > 0 && s.passesGates()
}

// awaitsWorkload: the workload that lockstep.dev/after names gets the change first.
func awaitsWorkload(s situation) (Decision, bool) {
	d := s.waits(input.AwaitsWorkload, s.Gates.After+" goes first")
	d.Recheck = afterCheck
	return d, s.Gates.After != "" && s.passesGates()
}

// damped: a workload that is rolled out again and again, or a source that keeps changing,
// waits longer each time.
func damped(s situation) (Decision, bool) {
	d := s.waits(input.Damped, s.Gates.Damped.Why)
	d.Recheck = s.Gates.Damped.Until.Sub(s.Now)
	return d, d.Recheck > 0 && s.passesGates()
}

// waits is a change that something delays, and that needs no user.
func (s situation) waits(reason input.Reason, why string) Decision {
	d := s.held(reason, why)
	d.Verb = Wait
	return d
}

// passesGates reports whether the change has to pass the gates that delay it: nobody insists
// on it, it isn't only a repair, and it hasn't begun. Pods would have different versions while
// a series of evictions waits.
func (s situation) passesGates() bool {
	return s.Force == NoForce && !s.repairs() && !s.isEvicting()
}

// repairs reports whether the change only restores images that were healthy.
func (s situation) repairs() bool {
	return len(s.draft.Due) > 0 && len(matching(s.draft.Due, func(f input.Finding) bool { return f.Reason == input.PutBack })) == len(s.draft.Due)
}

// isEvicting reports whether a series of evictions delivers the change already.
func (s situation) isEvicting() bool {
	begun := s.Entry.Eviction
	_, evicts := s.strategy.(byEviction)
	return evicts && !begun.Since.IsZero() && begun.For == s.order(s.draft).Shown(s.State.Shown).String()
}
