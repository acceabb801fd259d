package podsync

import (
	"context"
	"log/slog"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Publisher puts generations of files in place.
//
//nolint:interfacebloat // one disk; two interfaces would always be used together
type Publisher interface {
	// Current names the generation that readers see. Has reports whether a generation is
	// complete on the disk.
	Current() (string, error)
	Has(id string) bool
	// Verify returns why a generation differs from the set it was staged with.
	Verify(id string) error
	// Obstacles lists the files that can't be placed because of another program's file, and why.
	Obstacles(tree filemap.Tree) map[string]error
	// Stage builds a generation aside and returns its directory; Publish makes
	// it visible in one step.
	Stage(id string, tree filemap.Tree) (string, error)
	Publish(id string) error
	// Prune removes everything that is neither visible, nor to be kept, nor live, and returns
	// when to call it again.
	Prune(keep []string, live func() map[filemap.Digest]bool) (time.Time, error)
}

// StateStore keeps small files across restarts.
type StateStore interface {
	ReadState(name string) ([]byte, error)
	WriteState(name string, content []byte) error
}

// Delivery is a generation as the application's side sees it.
type Delivery struct {
	Generation string
	// Dir is the directory with its files: the staged directory for a check, the root
	// afterwards.
	Dir string
	// Changed lists the paths that differ from the previous set.
	Changed []string
}

// UnreachableError is an application that could not be queried: no process listens, it
// doesn't answer, or it is not ready. It is not a refusal, because an application that is
// starting behaves the same.
type UnreachableError struct{ Err error }

// Error describes the attempt.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// UnansweredError is an application that was notified and has not answered in time. It may
// still be working, so the agent doesn't notify it again before it has answered.
type UnansweredError struct {
	Err error
	// Patience is how long one wait for the answer lasts before it counts as a
	// failure.
	Patience time.Duration
	// Answer delivers the late answer, once: nil when the application loaded the set.
	Answer <-chan error
	// Abandon stops waiting for the answer.
	Abandon func()
}

// Error describes the request.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Err }

// AnsweredError is a query that failed after a late yes. The waits for that yes don't count
// as failures.
type AnsweredError struct{ Err error }

// Error is the query's error.
func (e *AnsweredError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AnsweredError) Unwrap() error { return e.Err }

// OutputError is a command that failed. Its output may quote configuration, so only the
// status file shows it, never a log, a metric or a probe.
type OutputError struct {
	Output string
	Err    error
}

// Error tells how the command ended, without what it printed.
func (e *OutputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// ToleratedError is a failure that is only reported.
type ToleratedError struct{ Err error }

// Error returns the cause's text.
func (e *ToleratedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ToleratedError) Unwrap() error { return e.Err }

// Checker checks a staged generation before it is published. It returns the output of the
// check.
type Checker interface {
	Check(ctx context.Context, delivery Delivery) (output string, err error)
}

// Notifier notifies the application that its files changed. acknowledged is true when success
// means that the application answered. Its error is an *UnreachableError when the
// notification did not reach the application, and an *UnansweredError when it did and the
// answer is pending.
type Notifier interface {
	Notify(ctx context.Context, delivery Delivery) (acknowledged bool, err error)
}

// Confirmer finds out whether the application runs the delivered set.
type Confirmer interface {
	// Baseline is taken before the application is notified. Its error is an *UnreachableError
	// when the application can't be queried at all, for example because it is starting.
	Baseline(ctx context.Context) (string, error)
	// Confirm waits until the application shows the delivery, or fails.
	Confirm(ctx context.Context, delivery Delivery, baseline string) error
	// Compares reports whether the answer describes changes since the baseline. The answer to
	// any other query may predate the end of the application's work.
	Compares() bool
}

// Child is the application in subprocess mode.
type Child interface {
	Start() error
	Running() bool
	Done() <-chan struct{}
	ExitCode() int
}

// Parts are the dependencies of an agent. Checker, Confirmer, Child and Age may be nil.
type Parts struct {
	Publisher Publisher
	States    StateStore
	Checker   Checker
	// CheckName distinguishes the checks of two command lines.
	CheckName string
	Notifiers []Notifier
	Confirmer Confirmer
	Child     Child
	// Age is how long ago the most silent source last responded, and its name.
	Age func() (source string, age time.Duration)
	// Root is the directory that the application reads.
	Root string
	// Key keeps generation names secret; see Options.Keyed.
	Key []byte
	Log *slog.Logger
	Now func() time.Time
	// Jitter returns a number between 0 and 1.
	Jitter func() float64
}
