package rollouts

import (
	"errors"
	"fmt"
	"time"
)

// Options of the loop.
type Options struct {
	// Quiet is the quiet window of workloads that do not set their own. Default 5 s.
	Quiet time.Duration
	// MaxDelay is the maximum time continuous changes can delay a rollout. Default 60 s.
	MaxDelay time.Duration
	// Workers is how many workloads are reconciled in parallel. Default 32.
	Workers int
}

// DefaultOptions returns the options that suit most clusters.
func DefaultOptions() Options {
	return Options{Quiet: 5 * time.Second, MaxDelay: time.Minute, Workers: 32}
}

// Validate lists everything that is wrong with the options.
func (o Options) Validate() error {
	var wrong []error
	if o.Quiet < 0 {
		wrong = append(wrong, fmt.Errorf("quiet window %s: must not be negative", o.Quiet))
	}
	if o.MaxDelay < o.Quiet {
		wrong = append(wrong, fmt.Errorf("maximum delay %s: must not be shorter than the quiet window %s", o.MaxDelay, o.Quiet))
	}
	if o.Workers < 1 {
		wrong = append(wrong, fmt.Errorf("workers %d: need at least one", o.Workers))
	}
	return errors.Join(wrong...)
}
