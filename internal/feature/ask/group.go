package ask

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Group is how much a workload's state matters to a user, in one word.
type Group string

// The groups of states.
const (
	// Failed: a user has to correct something, or a rollout failed.
	Failed Group = "failed"
	// Undone: a change was delivered and reverted.
	Undone Group = "undone"
	// Held: a user or an operator forbids the change.
	Held Group = "held"
	// Waiting: the change is delivered without anybody's help.
	Waiting Group = "waiting"
	// Behind: the controller doesn't deliver it as it is, or hasn't looked yet.
	Behind Group = "behind"
	// InStep: nothing has to end.
	InStep Group = "in step"
)

// Groups are all of them, those that matter most first.
func Groups() []Group { return []Group{Failed, Undone, Held, Waiting, Behind, InStep} }

// Rank is the place in Groups.
func (g Group) Rank() int { return slices.Index(Groups(), g) }

// compareStates sorts the states that matter most first. It isn't inlined into the order of each
// list, to keep the program small.
//
//go:noinline
func compareStates(a, b *Report) int { return a.Group().Rank() - b.Group().Rank() }

// Vouches reports whether the controller vouches for a state now. One that it doesn't vouch for is
// an estimate: no workload is in step for sure while the controller is down.
func (c Controller) Vouches(s Report) bool {
	return c.State != Down && s.From != FromEstimate && (s.From != FromEvent || c.State == Running)
}

// GroupWords is the group of a state, in words.
func (c Controller) GroupWords(s Report) string {
	if !c.Vouches(s) {
		return string(s.Group()) + estimated
	}
	return string(s.Group())
}

const estimated = ", an estimate"

// Standing is how an input of the workload stands, in words. Its group is empty when that isn't
// known for sure.
func (e *Explanation) Standing(u *Use) (Group, string) {
	switch {
	case !u.Followed:
		return "", "not followed"
	case u.Hidden != "":
		return "", NotVisible
	case u.Delivered == "":
		return "", "no version is on record"
	case u.Undone:
		return Undone, string(Undone)
	case !u.InStep():
		return Behind, "not delivered"
	case !e.Controller.Vouches(e.NextReport()):
		return "", string(InStep) + estimated
	}
	return InStep, string(InStep)
}

// Group is the group of a decision.
func (s Report) Group() Group {
	if s.IsSettled() {
		if r := input.Reason(s.Reason); s.From == FromEstimate && (r == input.Reloaded || r == input.PutBack || r == input.Refreshed) {
			return Waiting // it hasn't happened yet
		}
		return InStep
	}
	switch input.Reason(s.Reason) {
	case input.Undone, input.Contested:
		return Undone
	case input.Held, input.Paused, input.Stopped, input.AwaitsPods:
		return Held
	case input.QuietWindow, input.Evicting, input.GenerationNotObserved, input.Changed,
		input.AwaitsTurn, input.AwaitsFirst, input.AwaitsWindow, input.AwaitsWorkload, input.Damped:
		return Waiting
	case NotOnRecord, NotWatched, input.NotFollowed, input.KindOff, input.ReloadOff, input.ImagesOff, input.StrategyOff:
		return Behind
	default:
		return Failed
	}
}
