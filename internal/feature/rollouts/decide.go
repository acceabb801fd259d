package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// check is one step of the rule: it decides, or leaves the decision to the next.
type check func(situation) (Decision, bool)

// Decide returns what to do with a workload now. The first check that applies decides.
// When none does, the change is due and the strategy decides.
func Decide(in Observation) Decision {
	s := in.situation()
	checks := []check{
		settingNotUnderstood, // a user has to correct it first
		templateMissing,      // there is nothing to roll out
		recordTooNew,         // a newer program knows which versions were delivered
		tooManySources,       // one workload must not fill the record of others
		recordFull,           // what isn't on record would be delivered again and again
		notActed,             // another writer changed the template, and its rollout hasn't begun
		notFollowed,          // no setting asks for it
		awaitsPods,           // the template contains the change, and older pods are left
		nothingDue,           // current versions are delivered, or only the record changes
		readByTheNextJob,     // new pods start by themselves
	}
	for _, c := range append(append(checks, gates()...), awaitsTurn) {
		if d, known := c(s); known {
			d.Estimate = in.Estimate
			return d
		}
	}
	d := s.strategy.decide(s)
	d.Estimate = in.Estimate
	return d
}

// gates are the checks that let a due change through later, or not at all: what is in the workload's own way.
func gates() []check {
	return []check{
		stoppedByOperator, // an operator stopped every automatic change
		notQuiet,          // more changes may come
		outsideWindow,     // the maintenance window is closed
		heldWorkload,      // a user forbids every change
		barredInput,       // a user forbids this one, or reverted it
		paused,            // a new template wouldn't restart pods
		observed,          // the settings ask only for reports
		strategyObjects,   // it is switched off, or doesn't change the template
		awaitsWorkload,    // another workload goes first
		damped,            // it was rolled out too often
	}
}

// NeedsPods reports whether the decision depends on the workload's pods. Beginning a
// series of evictions doesn't, if the workload sets its number of replicas.
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
	rolling, due := s.rollsOut(), withStanding(in.Findings, input.Due)
	s.draft = Decision{Due: rolling, Message: changes(rolling)}
	switch {
	case in.Force != NoForce:
		s.draft.Message = names(rolling)
	case len(rolling) == 0:
		s.draft.Message = changes(due)
	}
	if len(rolling)+len(due) > 0 {
		s.draft.PendingSince = in.pendingSince()
		s.draft.DelaySince = s.delaySince()
	}
	return s
}

// delaySince is since when the workload could have been rolled out. While something
// forbids the rollout, continuous changes don't use up the maximum delay.
func (s situation) delaySince() time.Time {
	for _, c := range []check{stoppedByOperator, outsideWindow, heldWorkload, barredInput, paused, strategyObjects} {
		if _, stuck := c(s); stuck {
			return time.Time{}
		}
	}
	if d := s.Entry.DelaySince; !d.IsZero() && !d.After(s.Now) {
		return d
	}
	return s.Now
}
