package rollouts

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/core/window"
)

// Options of the loop.
type Options struct {
	// Quiet is the quiet window of workloads that do not set their own. Default 5 s.
	Quiet time.Duration
	// MaxDelay is the maximum time continuous changes can delay a rollout. Default 60 s.
	MaxDelay time.Duration
	// Workers is how many workloads are reconciled in parallel. Default 32.
	Workers int
	Safety  Safety
}

// Safety bounds how fast a change reaches the workloads that use it. The zero value bounds
// nothing.
type Safety struct {
	// Ramp delivers a change to one workload, then to 2, then to 4.
	Ramp bool
	// MaxRolling is how many workloads roll at the same time for one change, 0 for any number.
	MaxRolling int
	// StopAfter is how many workloads have to fail with a version until it is stopped, 0 for
	// never.
	StopAfter int
	// Settle is how long a workload has to stay available until it counts as healthy.
	Settle time.Duration
	// Timeout frees the place of a rollout without progress, PauseGrace that of a paused one.
	Timeout, PauseGrace time.Duration
	// Damping is the first pause after a series of rollouts, 0 for none, and MaxDamping the
	// longest one.
	Damping, MaxDamping time.Duration
	// Window is the maintenance window of workloads without one of their own, empty for none.
	Window string
}

// DefaultOptions returns the options that suit most clusters.
func DefaultOptions() Options {
	return Options{Quiet: 5 * time.Second, MaxDelay: time.Minute, Workers: 32}
}

// SafeOptions are the default options with bounds on how fast a change spreads.
func SafeOptions() Options {
	o := DefaultOptions()
	o.Safety = Safety{
		Ramp: true, MaxRolling: 20, StopAfter: 1,
		Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 10 * time.Minute,
		Damping: 30 * time.Second, MaxDamping: 15 * time.Minute,
	}
	return o
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
		wrong = append(wrong, fmt.Errorf("workers %d: must be at least 1", o.Workers))
	}
	return errors.Join(errors.Join(wrong...), o.Safety.validate())
}

func (s Safety) validate() error {
	var wrong []error
	refuse := func(negative bool, flag string, value any) {
		if negative {
			wrong = append(wrong, fmt.Errorf("%s %v: must not be negative", flag, value))
		}
	}
	refuse(s.MaxRolling < 0, "rolling workloads", s.MaxRolling)
	refuse(s.StopAfter < 0, "failures until a stop", s.StopAfter)
	if s.StopAfter > record.MaxFailed {
		wrong = append(wrong, fmt.Errorf("failures until a stop %d: at most %d", s.StopAfter, record.MaxFailed))
	}
	refuse(s.Settle < 0, "settle time", s.Settle)
	refuse(s.Timeout < 0, "rollout timeout", s.Timeout)
	if s.Timeout == 0 && s != (Safety{}) {
		wrong = append(wrong, errors.New("rollout timeout 0: must be positive"))
	}
	refuse(s.PauseGrace < 0, "grace of a pause", s.PauseGrace)
	if s.Window != "" {
		if _, err := window.Parse(s.Window); err != nil {
			wrong = append(wrong, fmt.Errorf("maintenance window %q: %w", s.Window, err))
		}
	}
	refuse(s.Damping < 0, "damping", s.Damping)
	if s.MaxDamping < s.Damping {
		wrong = append(wrong, fmt.Errorf("maximum damping %s: must not be shorter than the damping %s", s.MaxDamping, s.Damping))
	}
	return errors.Join(wrong...)
}

func (s Safety) patience() spread.Patience {
	return spread.Patience{Settle: s.Settle, Timeout: s.Timeout, PauseGrace: s.PauseGrace}
}
