package podsync

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// step carries out one decision and adds its outcome to the state. Its error ends the agent.
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

// fatal is the error of a failed step that ends the agent; nil when a retry can help.
func (a *Agent) fatal(o Outcome) error {
	switch {
	case o.Err == nil:
		return nil
	case o.Decision.Verb == StartChild:
		return o.Err
	case a.opts.Once:
		return o.Err // a one-shot agent doesn't retry
	case o.Decision.Verb == Check && o.Decision.Generation == a.state.Published && a.parts.Child != nil && a.childPhase() != ChildRunning:
		return o.Err // the child can't start on a set that failed its check
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

// CheckError is a generation that its checker refused. Only the status file shows the
// checker's output.
type CheckError struct{ Err error }

// Error describes how the check ended.
func (e *CheckError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CheckError) Unwrap() error { return e.Err }

// check runs the checker on the staged set, or on the published set where readers find it.
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
		a.pruneSoon() // a failed publish may leave files of both sets
		a.files.suspect = true
		a.planned.version = -1 // a new obstacle may have appeared since the plan was made
		return err
	}
	a.files.suspect, a.files.damaged = false, false
	a.inventory.Settle(a.planned.version)
	a.files.tree = a.planned.tree
	a.start.fresh = false
	a.pruneSoon()
	return nil
}

// unread reports that the application reads the set about to be published when it starts, so
// the agent doesn't have to notify it.
func (a *Agent) unread() bool {
	switch {
	case a.opts.Once:
		return true
	case a.opts.InitialNotify == NotifyAlways || a.parts.Child != nil:
		return false
	case a.opts.InitialNotify == NotifyNever:
		return a.start.fresh || a.state.Published == ""
	case a.opts.ReadOnly:
		// No file records which set the application has loaded: it may have been running for a long
		// time, and an earlier agent may have missed a change.
		return false
	default:
		return a.start.fresh
	}
}

// rollBack records the roll-back before the swap. Otherwise an agent killed after the swap
// would treat the failed set as a new one.
func (a *Agent) rollBack(id string) error {
	a.state.Barred = a.state.Published
	a.reported.mu.Lock()
	a.reported.status.State = a.state
	a.writeStatus()
	a.reported.mu.Unlock()
	a.files.tree = filemap.Tree{} // so the next set isn't compared with the failed one
	a.pruneSoon()
	err := a.parts.Publisher.Verify(id)
	if err == nil {
		err = a.parts.Publisher.Publish(id)
	}
	a.files.suspect, a.files.damaged = err != nil, false
	return err
}
