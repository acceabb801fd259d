package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// safetyFlags configure how fast a change reaches the workloads that use it, and who is notified.
type safetyFlags struct {
	shared     []string
	notifyFile string
}

func (o *safetyFlags) bind(fs *pflag.FlagSet, s *rollouts.Safety) {
	fs.BoolVar(&s.Ramp, "ramp", s.Ramp, "deliver a change that affects more than three workloads to one of them, then to 2, then to 4 and so on, each step after the previous one is healthy")
	fs.IntVar(&s.MaxRolling, "max-rolling", s.MaxRolling, "how many workloads roll out at the same time for one change; 0 for any number")
	fs.IntVar(&s.StopAfter, "stop-after", s.StopAfter, "stop a version after this many previously healthy workloads failed with it; 0 for never")
	fs.DurationVar(&s.Settle, "settle", s.Settle, "how long a workload must stay available after its rollout to count as healthy")
	fs.DurationVar(&s.Timeout, "rollout-timeout", s.Timeout, "time without progress after which a rollout doesn't count for --max-rolling")
	fs.DurationVar(&s.PauseGrace, "pause-grace", s.PauseGrace, "time after which a paused canary doesn't count for --max-rolling")
	fs.DurationVar(&s.Damping, "damping", s.Damping, "pause before the sixth rollout in a row of a workload, or the sixth version of a source; each further pause is twice as long; 0 for none")
	fs.DurationVar(&s.MaxDamping, "max-damping", s.MaxDamping, "maximum pause of --damping")
	fs.StringVar(&s.Window, "window", s.Window, "maintenance window of workloads without lockstep.dev/window: cron expression, duration and time zone, such as '0 2 * * 1-5 2h Europe/Berlin'")
	fs.StringArrayVar(&o.shared, "shared", nil, "a source with the same content in all namespaces, such as configmap/ca-bundle: a new version counts as one change in all of them; may be repeated")
	fs.StringVar(&o.notifyFile, "notify-file", "", "a file with notification targets and routes, re-read when it changes; see docs/guides/notifications.md (default none)")
}

// ids are the shared sources.
func (o *safetyFlags) ids() ([]input.ID, error) {
	ids := make([]input.ID, len(o.shared))
	for i, text := range o.shared {
		var err error
		if ids[i], err = input.ParseSource(text); err != nil {
			return nil, fmt.Errorf("--shared: %w", err)
		}
	}
	return ids, nil
}
