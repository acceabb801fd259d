package podsync

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Agent drives one directory and one application.
type Agent struct {
	opts      Options
	parts     Parts
	inventory *Inventory
	wake      chan struct{}

	state    State
	planned  plan
	checking Delivery
	baseline string
	answers  answers
	start    start
	files    files

	complaints map[string]string // the last error logged about the sources, by message
	reported   lastReport
}

// answers are the receivers' answers to one notification.
type answers struct {
	// pending are the receivers that were notified and have not answered yet. acknowledged is
	// whether the other receivers' answers count as a confirmation.
	pending      []*UnansweredError
	acknowledged bool
}

// start is how far the agent has come since it started.
type start struct {
	fresh bool      // nothing was published when the agent started
	child bool      // the child was started
	seen  bool      // the sources were complete once
	begun time.Time // when the agent started to read the sources
}

// files are the files of the published set.
type files struct {
	tree filemap.Tree // as far as this process knows it
	// suspect means that the files have to be verified, damaged that they differ from the
	// published set.
	suspect, damaged bool
	// owners maps paths to the namespaces that had them first; see Rules.Shared.
	owners map[string]string
	// recorded are the digests of the state files that the agent wrote or read; see write.
	recorded map[string]filemap.Digest
	// replanAt is when to check again for obstacles to files that were left out. Zero means that
	// no file was left out.
	replanAt time.Time
	pruneAt  time.Time
}

// lastReport is the agent's own status. Other goroutines read it.
type lastReport struct {
	mu       sync.Mutex
	status   Status
	attempts map[attempt]int
	complete bool // all sources were read, as of the status
	written  string
	statusAt time.Time // when to retry writing the status file
}

// plan is the observed set and the files it maps to.
type plan struct {
	version  int
	snapshot Snapshot
	tree     filemap.Tree
	id       string
	err      error
}

// refused is why the sources can't become a set; empty means that they can.
func (p plan) refused() Reason {
	if p.err == nil || !p.snapshot.Complete() {
		return ""
	}
	if _, large := errors.AsType[*filemap.SizeError](p.err); large {
		return SetTooLarge
	}
	return SourceConflict
}

// New creates an agent. store keeps the sources' contents.
func New(opts Options, parts Parts, store Store) (*Agent, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{opts: opts, parts: parts, wake: make(chan struct{}, 1), reported: lastReport{attempts: map[attempt]int{}}, complaints: map[string]string{}, start: start{begun: parts.Now()}, files: files{suspect: true}}
	a.planned.version = -1
	a.inventory = NewInventory(opts, store, parts.Now, a.Wake)
	if err := a.restore(); err != nil {
		return nil, err
	}
	return a, nil
}

// Inventory is where the sources report their objects.
func (a *Agent) Inventory() *Inventory { return a.inventory }

// Wake makes the agent gather and decide again.
func (a *Agent) Wake() {
	select {
	case a.wake <- struct{}{}:
	default: // it is already woken
	}
}

// ExitError makes the process exit with a code.
type ExitError struct{ Code int }

// Error describes how the application ended.
func (e *ExitError) Error() string { return "the application ended with code " + strconv.Itoa(e.Code) }

// Run works until ctx ends, the application ends, or the start fails. With
// Options.Once it returns after the first set.
func (a *Agent) Run(ctx context.Context) error {
	defer a.abandon()
	for ctx.Err() == nil {
		in := a.gather()
		if err := a.refusal(); err != nil {
			return err
		}
		a.logSources()
		d := Decide(in)
		a.report(d)
		if a.opts.Once && a.finished(d) {
			if !in.unchecked() {
				return nil
			}
			d = Decision{Verb: Check, Reason: d.Reason, Generation: a.state.Published}
		}
		if d.Verb == Exit {
			return &ExitError{Code: a.parts.Child.ExitCode()}
		}
		if d.Verb != Wait {
			if err := a.step(ctx, d); err != nil {
				a.report(Decision{Verb: Exit, Reason: Decide(a.input()).Reason}) // the status shows the final reason
				return err
			}
			continue
		}
		a.rest(ctx, d.Until, in.Child == ChildRunning)
	}
	return nil
}

// finished reports that a one-shot agent has done its work: the observed set, or the set
// that an earlier agent rolled back to, is in place. A one-shot agent doesn't notify the
// application.
func (a *Agent) finished(d Decision) bool {
	if a.planned.id == "" || a.files.damaged {
		return false
	}
	return a.state.Published == a.planned.id || d.Reason == RolledBack
}

// refusal is the error that ends the agent at its start. An error at that point is most
// likely a configuration mistake, and no application depends on the files yet. If a set is
// already in place, an application may depend on it, so the agent keeps running and the set
// stays.
func (a *Agent) refusal() error {
	snap := a.planned.snapshot
	if a.start.seen || (a.state.Published != "" && !a.opts.Once) {
		return nil
	}
	if len(snap.Unread) > 0 {
		return a.unreadable(snap)
	}
	if len(snap.Missing) > 0 {
		if a.opts.WaitForSources {
			return nil
		}
		return &MissingError{Sources: snap.Missing}
	}
	a.start.seen = true
	refused := a.planned.refused()
	if refused == SourceConflict {
		return fmt.Errorf("the sources conflict: %w", a.planned.err)
	}
	if refused == SetTooLarge {
		return a.planned.err
	}
	return nil
}

// unreadable is why a source can't be read, if that ends the agent.
func (a *Agent) unreadable(snap Snapshot) error {
	if !a.opts.FailFast {
		return nil
	}
	for _, name := range snap.Unread {
		if why := snap.Failures[name]; why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// gather collects the input of a decision.
func (a *Agent) gather() Observation {
	a.plan()
	rejected := a.state.Rejected
	a.state = a.state.observing(a.planned.id, a.parts.Confirmer != nil)
	if rejected != a.state.Rejected {
		a.setCheckOutput("") // it belongs to a set that is not observed any more
	}
	a.lookAtFiles()
	return a.input()
}

// lookAtFiles verifies that the published set is still in place as a whole: at the start,
// because another program may have changed files in the meantime, and after a failed
// publish, which may have left files of both sets. It waits until the sources hold that set,
// because only then can the agent restore it.
func (a *Agent) lookAtFiles() {
	if !a.files.suspect || a.planned.id == "" || a.planned.id != a.state.Published {
		return
	}
	a.files.suspect = false
	current, err := a.parts.Publisher.Current()
	if err == nil && current != a.planned.id {
		err = fmt.Errorf("generation %s is in its place", current)
	}
	if err == nil {
		err = a.parts.Publisher.Verify(a.planned.id)
	}
	if err != nil && !a.files.damaged {
		a.parts.Log.Warn("the published files have changed: "+err.Error(), "generation", a.planned.id)
	}
	a.files.damaged = err != nil
}

// input is the input of a decision from the last plan, without reading the sources again.
func (a *Agent) input() Observation {
	return Observation{
		Now: a.parts.Now(), Begun: a.start.begun, Timing: a.opts.Timing, State: a.state, Child: a.childPhase(),
		Checks: a.parts.Checker != nil, Confirms: a.parts.Confirmer != nil,
		Observed: Observed{
			Generation:  a.planned.id,
			FirstChange: a.planned.snapshot.FirstChange, LastChange: a.planned.snapshot.LastChange,
			Refused: a.planned.refused(), Damaged: a.files.damaged,
		},
	}
}

// plan recomputes the observed set when the inventory changed.
func (a *Agent) plan() {
	snap := a.inventory.Snapshot()
	if snap.Version == a.planned.version && (a.files.replanAt.IsZero() || a.parts.Now().Before(a.files.replanAt)) {
		a.planned.snapshot = snap
		return
	}
	if snap.Version != a.planned.version {
		a.pruneSoon() // even when nothing is published in the end, the contents that were read are on the disk
	}
	p := plan{version: snap.Version, snapshot: snap}
	if snap.Complete() {
		p.tree, p.err = filemap.Plan(snap.Objects, a.opts.Rules.Since(!a.start.fresh, a.files.owners))
		a.remember(p)
	}
	a.files.replanAt = time.Time{}
	if a.opts.Rules.LeaveOut {
		p.tree = a.withoutObstacles(p.tree)
	}
	if snap.Complete() && p.err == nil {
		p.id = p.tree.ID(a.key(), a.opts.Attributes)
	}
	if p.id != "" && p.id != a.planned.id && len(p.tree.Files) == 0 {
		a.parts.Log.Warn("the sources don't contain any files: no object matches, or the matching objects don't have keys")
	}
	if p.id != "" && p.id == a.state.Published {
		a.inventory.Settle(p.version)
		a.files.tree = p.tree
		a.state.Files, a.state.Bytes = len(p.tree.Files), p.tree.Bytes()
	}
	a.planned = p
}

// obstacleInterval is how often the agent checks whether an obstacle is gone. No event
// reports that.
const obstacleInterval = 10 * time.Second

// withoutObstacles leaves out files that can't be placed, so they don't hold up the others.
func (a *Agent) withoutObstacles(tree filemap.Tree) filemap.Tree {
	obstacles := a.parts.Publisher.Obstacles(tree)
	if len(obstacles) > 0 {
		a.files.replanAt = a.parts.Now().Add(obstacleInterval)
	}
	return tree.Without(obstacles)
}

func (a *Agent) key() []byte {
	if a.opts.Keyed {
		return a.parts.Key
	}
	return nil
}

func (a *Agent) childPhase() ChildPhase {
	switch {
	case a.parts.Child == nil:
		return NoChild
	case !a.start.child:
		return ChildPending
	case a.parts.Child.Running():
		return ChildRunning
	default:
		return ChildExited
	}
}

// rest waits for a change, the end of a child that was running, or a time.
func (a *Agent) rest(ctx context.Context, until time.Time, childRan bool) {
	a.prune()
	var timer <-chan time.Time
	at := until
	for _, other := range []time.Time{a.files.pruneAt, a.files.replanAt, a.reported.statusAt} {
		at = sooner(at, other)
	}
	if !at.IsZero() {
		t := time.NewTimer(max(0, at.Sub(a.parts.Now())))
		defer t.Stop()
		timer = t.C
	}
	var childDone <-chan struct{}
	if childRan {
		childDone = a.parts.Child.Done()
	}
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-timer:
	case <-childDone:
	}
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// pruneSoon schedules a clean-up, because something on the disk may have become useless.
func (a *Agent) pruneSoon() {
	if a.files.pruneAt.IsZero() {
		a.files.pruneAt = a.parts.Now().Add(a.opts.PruneInterval)
	}
}

// prune cleans up the disk when a clean-up is due.
func (a *Agent) prune() {
	now := a.parts.Now()
	if a.files.pruneAt.IsZero() || now.Before(a.files.pruneAt) {
		return
	}
	next, err := a.parts.Publisher.Prune([]string{a.state.Previous, a.state.Staged}, a.inventory.Live)
	a.files.pruneAt = next
	if err != nil {
		a.parts.Log.Warn("cleaning up failed, trying again in a minute", "error", err)
		a.files.pruneAt = now.Add(time.Minute)
	}
}
