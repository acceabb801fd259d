package podsync

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// InitialNotify decides whether the agent notifies the application of the first set.
type InitialNotify string

// The policies for the first set.
const (
	// NotifyNever: the application starts after the agent and reads the files
	// itself.
	NotifyNever InitialNotify = "never"
	// NotifyIfChanged: only when the agent found an older set in place, or can't know because
	// another program publishes.
	NotifyIfChanged InitialNotify = "if-changed"
	// NotifyAlways: every time the agent starts.
	NotifyAlways InitialNotify = "always"
)

// OnDelete decides what happens to the files of a deleted object.
type OnDelete string

// The policies for deleted objects.
const (
	// DeleteAuto keeps the files of an object that was named and removes those
	// of an object that left a label selection.
	DeleteAuto OnDelete = "auto"
	// DeleteKeeps always keeps the files, DeleteRemoves always removes them.
	DeleteKeeps   OnDelete = "keep"
	DeleteRemoves OnDelete = "remove"
)

// Source is one source as the pipeline sees it.
type Source struct {
	// Name identifies it in the inventory, the log and the status.
	Name string
	// Named is true when the source is one object that has to exist.
	Named bool
}

// Options are the policy of one agent.
type Options struct {
	Sources []Source
	Rules   filemap.Rules
	Timing  Timing
	// InitialNotify defaults to if-changed.
	InitialNotify InitialNotify
	OnDelete      OnDelete
	// WaitForSources waits for a named object that does not exist, instead of
	// giving up at start.
	WaitForSources bool
	// FailFast ends the agent when a source can't be read at the start and nothing is published
	// yet, instead of trying again.
	FailFast bool
	// Once ends the agent after the first set is published.
	Once bool
	// ApplicationApart makes /healthz report only on the agent itself: its first set and its
	// sources. The application is on the paths that name it, and in /readyz.
	ApplicationApart bool
	// ReadOnly is true when another program publishes and the agent only notifies.
	ReadOnly bool
	// Keyed prevents guessing contents from generation names.
	Keyed bool
	// Attributes are the file attributes that are part of a generation's name: mode and owner.
	Attributes string
	// Stall is how long a source may be silent.
	Stall time.Duration
	// PruneInterval is the minimum time between two disk clean-ups.
	PruneInterval time.Duration
}

// DefaultMaxBytes is how much the sources of a set may hold together.
const DefaultMaxBytes = 256 << 20

// DefaultOptions are the native defaults.
func DefaultOptions() Options {
	return Options{
		Rules: filemap.Rules{MaxBytes: DefaultMaxBytes},
		Timing: Timing{
			Quiet: 250 * time.Millisecond, MaxWait: 2 * time.Second, MaxFailures: 5,
			StartGrace: 10 * time.Minute, Retry: 500 * time.Millisecond, MaxRetry: 30 * time.Second,
		},
		InitialNotify: NotifyIfChanged, OnDelete: DeleteAuto, Stall: 2 * time.Minute, PruneInterval: time.Second,
	}
}

// Validate reports every mistake in the options.
func (o Options) Validate() error {
	mistakes := []error{o.Rules.Validate(), o.Timing.validate()}
	if len(o.Sources) == 0 {
		mistakes = append(mistakes, errors.New("no source: set a configmap, a secret, a selector or a directory"))
	}
	switch o.InitialNotify {
	case NotifyNever, NotifyIfChanged, NotifyAlways:
	default:
		mistakes = append(mistakes, fmt.Errorf("initial notify %q: want never, if-changed or always", o.InitialNotify))
	}
	switch o.OnDelete {
	case DeleteAuto, DeleteKeeps, DeleteRemoves:
	default:
		mistakes = append(mistakes, fmt.Errorf("on delete %q: want auto, keep or remove", o.OnDelete))
	}
	if o.ReadOnly && o.Timing.RollBack {
		mistakes = append(mistakes, errors.New("rolling back needs a root: files that another program publishes cannot be restored"))
	}
	return errors.Join(mistakes...)
}

func (t Timing) validate() error {
	var mistakes []error
	for name, d := range map[string]time.Duration{"quiet period": t.Quiet, "maximum wait": t.MaxWait, "minimum interval": t.MinInterval, "start grace": t.StartGrace} {
		if d < 0 {
			mistakes = append(mistakes, fmt.Errorf("%s %s: must not be negative", name, d))
		}
	}
	if t.Retry <= 0 || t.MaxRetry < t.Retry {
		mistakes = append(mistakes, fmt.Errorf("retry pause %s, at most %s: want positive times in this order", t.Retry, t.MaxRetry))
	}
	if t.MaxFailures < 1 {
		mistakes = append(mistakes, fmt.Errorf("maximum failures %d: want at least 1", t.MaxFailures))
	}
	return errors.Join(mistakes...)
}
