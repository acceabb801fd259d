package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Options of the loop.
type Options struct {
	// Defaults are the settings of workloads that say nothing themselves.
	Defaults settings.Defaults
	// MaxDelay bounds how long changes that keep coming can postpone a rollout.
	// Default 60 s.
	MaxDelay time.Duration
	// Workers is how many workloads are looked at in parallel. Default 8.
	Workers int
}

// DefaultOptions returns the options that suit most clusters.
func DefaultOptions() Options {
	return Options{Defaults: settings.Defaults{Quiet: 5 * time.Second}, MaxDelay: time.Minute, Workers: 8}
}

// Validate lists everything that is wrong with the options.
func (o Options) Validate() error {
	var wrong []error
	if o.Defaults.Quiet < 0 {
		wrong = append(wrong, fmt.Errorf("quiet window %s: must not be negative", o.Defaults.Quiet))
	}
	if o.MaxDelay < o.Defaults.Quiet {
		wrong = append(wrong, fmt.Errorf("maximum delay %s: must not be shorter than the quiet window %s", o.MaxDelay, o.Defaults.Quiet))
	}
	if o.Workers < 1 {
		wrong = append(wrong, fmt.Errorf("workers %d: need at least one", o.Workers))
	}
	return errors.Join(wrong...)
}
