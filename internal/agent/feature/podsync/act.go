package podsync

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// step carries one decision out and takes its outcome into the state. Its
// error ends the agent.
func (a *Agent) step(ctx context.Context, d Decision) error {
	o := Outcome{Decision: d, Jitter: a.parts.Jitter()}
	switch d.Verb {
	case Stage:
		o.Err = a.stage(d.Generation)
	case Check:
		o.Err = a.check(ctx, d.Generation)
	case Publish:
		o.Unread = a.unread()
		o.Err = a.publish(d.Generation)
		o.Files, o.Bytes = len(a.planned.tree.Files), a.planned.tree.Bytes()
	case Notify:
		o.Acknowledged, o.Err = a.notify(ctx)
		o.Asks = a.parts.Confirmer != nil && a.parts.Confirmer.Compares()
	case Confirm:
		o.Acknowledged, o.Err = a.confirm(ctx)
	case RollBack:
		o.Err = a.rollBack(d.Generation)
	case StartChild:
		o.Err = a.parts.Child.Start()
		a.start.child = o.Err == nil
	case Wait, Exit:
	}
	if ctx.Err() != nil && o.Err != nil {
		return nil //nolint:nilerr // stopped in the middle: the next start goes on from the state on the disk
	}
	o.Now = a.parts.Now()
	a.state = a.state.After(o, a.opts.Timing, a.parts.Confirmer != nil)
	a.record(o)
	return a.fatal(o)
}

// fatal is the failure of a step that the agent cannot wait out.
func (a *Agent) fatal(o Outcome) error {
	switch {
	case o.Err == nil:
		return nil
	case o.Decision.Verb == StartChild:
		return o.Err
	case a.opts.Once:
		return o.Err // there is no later try
	case o.Decision.Verb == Check && o.Decision.Generation == a.state.Published && a.parts.Child != nil && a.childPhase() != ChildRunning:
		return o.Err // there is nothing to start the application on
	case a.state.Published == "" && a.parts.Child != nil:
		return o.Err
	}
	return nil
}

func (a *Agent) stage(id string) error {
	dir, err := a.parts.Publisher.Stage(id, a.planned.tree)
	a.checking = Delivery{Generation: id, Dir: dir, Changed: filemap.Changed(a.files.tree, a.planned.tree)}
	return err
}

// CheckError is a generation that its checker refused. What the checker printed
// is in the status only.
type CheckError struct{ Err error }

// Error tells how the check ended.
func (e *CheckError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *CheckError) Unwrap() error { return e.Err }

// check looks at the staged set, or at the published one where it is.
func (a *Agent) check(ctx context.Context, id string) error {
	release := a.checking
	if id == a.state.Published && !a.files.damaged {
		release = a.delivery()
	}
	output, err := a.parts.Checker.Check(ctx, release)
	a.setCheckOutput(output)
	if err != nil {
		return &CheckError{Err: err}
	}
	return nil
}

func (a *Agent) publish(id string) error {
	if err := a.parts.Publisher.Publish(id); err != nil {
		a.pruneSoon() // it may have left files of both sets
		a.files.suspect = true
		a.planned.version = -1 // something may be in the way that was not when it was planned
		return err
	}
	a.files.suspect, a.files.damaged = false, false
	a.inventory.Settle(a.planned.version)
	a.files.tree = a.planned.tree
	a.start.fresh = false
	a.pruneSoon()
	return nil
}

// unread says that the application reads the set about to be published when it
// starts, and need not be told of it.
func (a *Agent) unread() bool {
	switch {
	case a.opts.Once:
		return true
	case a.opts.InitialNotify == NotifyAlways || a.parts.Child != nil:
		return false
	case a.opts.InitialNotify == NotifyNever:
		return a.start.fresh || a.state.Published == ""
	case a.opts.ReadOnly:
		// What the application knows is on no disk: it may have been running for
		// long, and an agent before this one may have missed a change.
		return false
	default:
		return a.start.fresh
	}
}

// rollBack writes down what it is about to do: an agent that is killed after
// the swap must not take the set that failed for a new one.
func (a *Agent) rollBack(id string) error {
	a.state.Barred = a.state.Published
	a.told.mu.Lock()
	a.told.status.State = a.state
	a.writeStatus()
	a.told.mu.Unlock()
	a.files.tree = filemap.Tree{} // the next set is not compared with the one that failed
	a.pruneSoon()
	err := a.parts.Publisher.Verify(id)
	if err == nil {
		err = a.parts.Publisher.Publish(id)
	}
	a.files.suspect, a.files.damaged = err != nil, false
	return err
}
