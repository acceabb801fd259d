package follow

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(situation) (Decision, bool)

// Decide says what has to happen to a workload now. The first check that knows an
// answer gives it.
func Decide(in Input) Decision {
	s := in.situation()
	for _, c := range []check{
		settingNotUnderstood, // a person has to correct it first
		templateMissing,      // there is nothing to move
		recordTooNew,         // a newer program knows what was given
		tooManySources,       // one workload must not fill the record of others
		recordFull,           // what is not on record would be given again and again
		notActed,             // another writer was here, and its rollout has not begun
		notFollowed,          // nothing asks for it
		awaitsPods,           // the template has it, and older pods are left
		nothingDue,           // given what exists, or only the record changes
		readByTheNextJob,     // new pods start by themselves
		notQuiet,             // more changes may come
		heldWorkload,         // a person forbids every change
		barredInput,          // a person forbids this one, or took it back
		paused,               // a new template would restart no pod
		observed,             // the settings ask only to be told
		strategyOff,          // the controller has no rights for it
		beyondStrategy,       // the strategy does not change the template
		evicted,              // one pod after the other
		refreshed,            // no pod restarts
	} {
		if d, known := c(s); known {
			d.Estimate = in.Estimate
			return d
		}
	}
	d := s.moved()
	d.Estimate = in.Estimate
	return d
}

// NeedsPods reports whether the decision depends on the workload's pods. That a series
// of evictions begins does not, where the workload says how many pods it wants.
func (in Input) NeedsPods() bool {
	d := Decide(in)
	return d.Verb == Evict && (!d.Eviction.Begin || in.Replicas == 0)
}

func (in Input) situation() situation {
	moves, due := in.moves(), withStanding(in.Findings, input.Due)
	s := situation{Input: in, draft: Decision{Moves: moves, Message: changes(moves)}}
	switch {
	case in.Force != NoForce:
		s.draft.Message = names(moves)
	case len(moves) == 0:
		s.draft.Message = changes(due)
	}
	if len(moves)+len(due) > 0 {
		s.draft.PendingSince = in.pendingSince()
		s.draft.DelaySince = s.delaySince()
	}
	return s
}

// delaySince is since when the workload could have been moved. What something forbids
// is not delayed by changes that keep coming.
func (s situation) delaySince() time.Time {
	for _, c := range []check{heldWorkload, barredInput, paused, strategyOff, beyondStrategy} {
		if _, stuck := c(s); stuck {
			return time.Time{}
		}
	}
	if d := s.Entry.DelaySince; !d.IsZero() && !d.After(s.Now) {
		return d
	}
	return s.Now
}
