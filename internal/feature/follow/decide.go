package follow

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(situation) (Decision, bool)

// Decide says what has to happen to a workload now. The first check that knows an
// answer gives it. When no check does, the change is due and the strategy decides.
func Decide(in Observation) Decision {
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
		strategyObjects,      // it is switched off, or does not change the template
	} {
		if d, known := c(s); known {
			d.Estimate = in.Estimate
			return d
		}
	}
	d := s.strategy.decide(s)
	d.Estimate = in.Estimate
	return d
}

// NeedsPods reports whether the decision depends on the workload's pods. That a series
// of evictions begins does not, where the workload says how many pods it wants.
func (in Observation) NeedsPods() bool {
	d := Decide(in)
	return d.Verb == Evict && (!d.Eviction.Begin || in.State.Replicas == 0)
}

// chooseStrategy returns the strategy that the workload's intent names. A forced rollout
// always changes the template.
func (in Observation) chooseStrategy() strategy {
	switch {
	case in.Force != NoForce:
		return byTemplate{}
	case in.Intent.Strategy == settings.StrategyEvict:
		return byEviction{}
	case in.Intent.Strategy == settings.StrategyRefresh:
		return byRefresh{}
	}
	return byTemplate{}
}

func strategyObjects(s situation) (Decision, bool) { return s.strategy.objects(s) }

func (in Observation) situation() situation {
	s := situation{Observation: in, strategy: in.chooseStrategy()}
	moves, due := s.rollsOut(), withStanding(in.Findings, input.Due)
	s.draft = Decision{Due: moves, Message: changes(moves)}
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
	for _, c := range []check{heldWorkload, barredInput, paused, strategyObjects} {
		if _, stuck := c(s); stuck {
			return time.Time{}
		}
	}
	if d := s.Entry.DelaySince; !d.IsZero() && !d.After(s.Now) {
		return d
	}
	return s.Now
}
