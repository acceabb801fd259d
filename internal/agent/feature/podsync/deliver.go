package podsync

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// delivery is the published set as the application sees it.
func (a *Agent) delivery() Delivery {
	return Delivery{Generation: a.state.Published, Dir: a.parts.Root, Changed: a.checking.Changed}
}

// notify tells everybody in order; the first failure ends it. Who was told and
// is still at work is no failure: the next one is told as well, and the answers
// are awaited together.
func (a *Agent) notify(ctx context.Context) (acknowledged bool, err error) {
	a.abandon()
	if a.parts.Confirmer != nil {
		if a.baseline, err = a.parts.Confirmer.Baseline(ctx); err != nil {
			return false, err
		}
	}
	a.answers.acknowledged = len(a.parts.Tellers) > 0
	for _, teller := range a.parts.Tellers {
		answered, err := teller.Tell(ctx, a.delivery())
		if working, late := errors.AsType[*UnansweredError](err); late {
			a.answers.pending = append(a.answers.pending, working)
			continue
		}
		if a.tolerates(err) {
			continue
		}
		if err != nil {
			a.abandon()
			return false, err
		}
		a.answers.acknowledged = a.answers.acknowledged && answered
	}
	if len(a.answers.pending) > 0 {
		return false, a.answers.pending[0]
	}
	return a.answers.acknowledged, nil
}

// tolerates logs a failure that nothing is repeated for.
func (a *Agent) tolerates(err error) bool {
	tolerated, ok := errors.AsType[*ToleratedError](err)
	if !ok {
		return false
	}
	a.parts.Log.Warn("a command failed, and nothing is repeated for it: "+tolerated.Error(), "generation", a.state.Published)
	if failed, printed := errors.AsType[*OutputError](err); printed {
		a.told.mu.Lock()
		defer a.told.mu.Unlock()
		a.told.status.Output = failed.Output
	}
	return true
}

// abandon stops waiting for answers about a set that is told anew or replaced.
func (a *Agent) abandon() {
	for _, u := range a.answers.pending {
		u.Abandon()
	}
	a.answers.pending = nil
}

// confirm waits for late answers and asks, as long as there is an application to ask:
// a child that ends has answered.
func (a *Agent) confirm(ctx context.Context) (acknowledged bool, err error) {
	if a.parts.Child == nil {
		return a.ask(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := a.parts.Child.Done()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	acknowledged, err = a.ask(ctx)
	if err != nil && !a.parts.Child.Running() {
		a.abandon()
		return false, fmt.Errorf("the application ended: %w", withoutWaiting(err))
	}
	return acknowledged, err
}

// withoutWaiting makes an error of an application that is gone one that the agent
// does not wait on.
func withoutWaiting(err error) error {
	if late, ok := errors.AsType[*UnansweredError](err); ok {
		return late.Err
	}
	return err
}

// ask brings in the answers that are awaited, then puts the question. A question
// that compares with before tells by itself that the work is done, and is put at
// once; any other could be answered from before.
func (a *Agent) ask(ctx context.Context) (acknowledged bool, err error) {
	confirmer, awaited := a.parts.Confirmer, len(a.answers.pending) > 0
	if awaited && confirmer != nil && confirmer.Compares() {
		return true, a.askWhileWorking(ctx)
	}
	for len(a.answers.pending) > 0 {
		if err := a.awaitAnswer(ctx); err != nil {
			return false, err
		}
	}
	if confirmer == nil {
		return a.answers.acknowledged, nil
	}
	err = confirmer.Confirm(ctx, a.delivery(), a.baseline)
	if err != nil && awaited {
		err = &AnsweredError{Err: err}
	}
	return true, err
}

// awaitAnswer waits for the first of the answers. One that says no ends the
// waiting for all: everybody is told again.
func (a *Agent) awaitAnswer(ctx context.Context) error {
	first := a.answers.pending[0]
	timer := time.NewTimer(first.Patience)
	defer timer.Stop()
	select {
	case err := <-first.Answer:
		a.answers.pending = a.answers.pending[1:]
		if err != nil {
			a.abandon()
		}
		return err
	case <-timer.C:
		return first
	case <-ctx.Done():
		return first
	}
}

// askWhileWorking asks an application that has not answered. Its yes counts at
// once; after a no it goes on being at work, unless its answer says no too.
func (a *Agent) askWhileWorking(ctx context.Context) error {
	err := a.parts.Confirmer.Confirm(ctx, a.delivery(), a.baseline)
	if err == nil {
		a.abandon()
		return nil
	}
	for len(a.answers.pending) > 0 {
		select {
		case answer := <-a.answers.pending[0].Answer:
			a.answers.pending = a.answers.pending[1:]
			if answer != nil {
				a.abandon()
				return answer
			}
		default:
			late := *a.answers.pending[0]
			late.Err = err
			return &late
		}
	}
	return &AnsweredError{Err: err}
}
