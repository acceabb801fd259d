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

// notify notifies all receivers in order and stops at the first failure. A receiver that was
// notified and is still working has not failed: the agent notifies the next one too, and
// waits for all answers together.
func (a *Agent) notify(ctx context.Context) (acknowledged bool, err error) {
	a.abandon()
	if a.parts.Confirmer != nil {
		if a.baseline, err = a.parts.Confirmer.Baseline(ctx); err != nil {
			return false, err
		}
	}
	a.answers.acknowledged = len(a.parts.Notifiers) > 0
	for _, notifier := range a.parts.Notifiers {
		answered, err := notifier.Notify(ctx, a.delivery())
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

// tolerates logs a failure that doesn't cause a retry.
func (a *Agent) tolerates(err error) bool {
	tolerated, ok := errors.AsType[*ToleratedError](err)
	if !ok {
		return false
	}
	a.parts.Log.Warn("a command failed and is not retried: "+tolerated.Error(), "generation", a.state.Published)
	if failed, printed := errors.AsType[*OutputError](err); printed {
		a.reported.mu.Lock()
		defer a.reported.mu.Unlock()
		a.reported.status.Output = failed.Output
	}
	return true
}

// abandon stops waiting for answers about a set that is replaced or notified again.
func (a *Agent) abandon() {
	for _, u := range a.answers.pending {
		u.Abandon()
	}
	a.answers.pending = nil
}

// confirm waits for late answers and queries the application while it exists. When the child
// ends, that is the answer.
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

// withoutWaiting replaces the error of an application that has ended, so the agent doesn't
// wait for its answer.
func withoutWaiting(err error) error {
	if late, ok := errors.AsType[*UnansweredError](err); ok {
		return late.Err
	}
	return err
}

// ask waits for the late answers, then queries the application. A query that compares with
// the baseline shows by itself that the work is done, so it doesn't wait for them. The
// answer to any other query could still describe the old set.
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

// awaitAnswer waits for the first pending answer. A refusal stops the waiting for all of
// them, because the agent then notifies every receiver again.
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

// askWhileWorking queries an application that has not answered. A yes counts at once. After
// a no the application counts as still working, unless its late answer is a refusal too.
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
