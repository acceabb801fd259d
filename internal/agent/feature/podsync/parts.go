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
	// Current names what readers see; Has says whether a generation is complete
	// on the disk.
	Current() (string, error)
	Has(id string) bool
	// Verify says why a generation does not hold any more what it was staged with.
	Verify(id string) error
	// Obstacles says for which files another program has something in the way.
	Obstacles(tree filemap.Tree) map[string]error
	// Stage builds a generation aside and returns its directory; Publish makes
	// it visible in one step.
	Stage(id string, tree filemap.Tree) (string, error)
	Publish(id string) error
	// Prune removes what is neither visible, nor to be kept, nor live, and
	// returns when it has to be called again.
	Prune(keep []string, live func() map[filemap.Digest]bool) (time.Time, error)
}

// StateStore keeps small files over a restart.
type StateStore interface {
	ReadState(name string) ([]byte, error)
	WriteState(name string, content []byte) error
}

// Delivery is a generation as the application's side sees it.
type Delivery struct {
	Generation string
	// Dir is where its files are: the staged directory for a check, the root
	// afterwards.
	Dir string
	// Changed lists the paths that differ from the set before.
	Changed []string
}

// UnreachableError is an application that could not be asked: no process listens, it
// gives no answer, or it is not ready. That is no refusal, because an
// application that is starting looks like this.
type UnreachableError struct{ Err error }

// Error says what was tried.
func (e *UnreachableError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// UnansweredError is an application that was told and has not answered in time.
// It may still be at work, so that it is not told again before it has answered.
type UnansweredError struct {
	Err error
	// Patience is how long one wait for the answer lasts before it counts as a
	// failure.
	Patience time.Duration
	// Answer gives the late answer, once: nil when the application took the set.
	Answer <-chan error
	// Abandon says that the agent does not wait for the answer any more.
	Abandon func()
}

// Error says what was sent.
func (e *UnansweredError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *UnansweredError) Unwrap() error { return e.Err }

// AnsweredError is a question that failed after a late yes: what the application
// was slow with is not held against it.
type AnsweredError struct{ Err error }

// Error is the question's.
func (e *AnsweredError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *AnsweredError) Unwrap() error { return e.Err }

// OutputError is a command that failed. What it printed may quote configuration:
// it is for the status file, and in no log, metric or probe.
type OutputError struct {
	Output string
	Err    error
}

// Error tells how the command ended, without what it printed.
func (e *OutputError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *OutputError) Unwrap() error { return e.Err }

// ToleratedError is a failure that is reported and changes nothing else.
type ToleratedError struct{ Err error }

// Error gives the reason.
func (e *ToleratedError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *ToleratedError) Unwrap() error { return e.Err }

// Checker looks at a staged generation before anybody else does. It returns
// what the check printed.
type Checker interface {
	Check(ctx context.Context, release Delivery) (output string, err error)
}

// Teller tells the application that its files changed. acknowledged is true
// when success means that the application answered. Its error is an
// *UnreachableError when the application did not get to know of anything, and an
// *UnansweredError when it did and its answer is awaited.
type Teller interface {
	Tell(ctx context.Context, release Delivery) (acknowledged bool, err error)
}

// Confirmer finds out whether the application runs what it was told.
type Confirmer interface {
	// Baseline is taken before the application is told. Its error is an
	// *UnreachableError when the application cannot be asked at all, for example
	// because it is starting.
	Baseline(ctx context.Context) (string, error)
	// Confirm waits until the application shows the release, or fails.
	Confirm(ctx context.Context, release Delivery, baseline string) error
	// Compares says that the answer is about what happened since the baseline.
	// Any other question may be answered from before the application was done.
	Compares() bool
}

// Child is the application in subprocess mode.
type Child interface {
	Start() error
	Running() bool
	Done() <-chan struct{}
	ExitCode() int
}

// Parts are what an agent is joined from. Checker, Confirmer, Child and Age may
// be nil.
type Parts struct {
	Publisher Publisher
	States    StateStore
	Checker   Checker
	// CheckName tells the checks of two command lines apart.
	CheckName string
	Tellers   []Teller
	Confirmer Confirmer
	Child     Child
	// Age is how long ago the source heard of least recently showed a sign of
	// life, and which one that is.
	Age func() (source string, age time.Duration)
	// Root is the directory that the application reads.
	Root string
	// Key makes names of generations secret; see Options.Keyed.
	Key []byte
	Log *slog.Logger
	Now func() time.Time
	// Jitter returns a number between 0 and 1.
	Jitter func() float64
}
