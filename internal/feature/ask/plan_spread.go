package ask

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// PlannedSpread is how a changed source would reach the workloads that roll for it.
type PlannedSpread struct {
	// Rolls is the number of workloads that roll.
	Rolls int `json:"rolls"`
	// Steps is true when one workload gets it before the others.
	Steps bool `json:"steps,omitempty"`
	// First is the workload that gets it first, if a user chose one. Otherwise Lockstep chooses a
	// healthy one.
	First string `json:"first,omitempty"`
	// AtMost is the number of workloads that may roll at the same time, omitted if it isn't limited.
	AtMost int `json:"atMost,omitempty"`
}

// IsSlow reports whether not all workloads roll at once.
func (s PlannedSpread) IsSlow() bool { return s.Steps || s.AtMost > 0 && s.Rolls > s.AtMost }

// Safety is the controller's, or the default where its flags aren't known.
func (v Serves) Safety() rollouts.Safety {
	if v.Watches != nil {
		return rollouts.Safety{Ramp: v.Ramp, MaxRolling: v.AtMost, StopAfter: v.StopAfter, Window: v.Window}
	}
	return rollouts.SafeOptions().Safety
}

// spreads adds how the sources that the files change would spread.
func (p *planner) spreads(all []prospect) {
	safety := p.Serves.Safety()
	for i, s := range p.plan.Sources {
		id, err := input.ParseID(s.Source)
		if err != nil {
			continue
		}
		source, exists := p.overlay.After.Source(s.Namespace, id)
		atMost := safety.MaxRolling
		to := &spread.Spread{Steps: safety.Ramp && (!exists || !settings.ForSource(source.Annotations).NoRamp)}
		for j, now := range all {
			if would := p.plan.Workloads[j].Would; would != WouldRoll && would != WouldEvict || now.key.Namespace != s.Namespace || !slices.Contains(now.touched, id) {
				continue
			}
			if own := now.after.Observation.Intent.MaxRolling; own > 0 && (atMost == 0 || own < atMost) {
				atMost = own
			}
			shows := now.after.Workload.Progress(p.Now)
			able := shows.Health == health.Done && shows.HasPods
			to.Set(spread.Member{
				ID: now.key.ID(), Namespace: now.key.Namespace, Standing: spread.Ready, First: now.after.Observation.Intent.First,
				Able: able, Healthy: able, Begins: p.Now,
			})
		}
		if planned := p.planned(to, atMost); planned.IsSlow() {
			p.plan.Sources[i].Spread = &planned
		}
	}
}

// planned is how a change would spread to workloads that all wait for their turn.
func (p *planner) planned(s *spread.Spread, atMost int) PlannedSpread {
	limits := spread.Limits{Rolling: atMost, Wait: rollouts.DefaultOptions().MaxDelay, Now: p.Now}
	planned := PlannedSpread{Rolls: s.Count().All, AtMost: atMost}
	line := s.Line()
	first := slices.IndexFunc(line, func(m spread.Member) bool { return s.Room(m, limits) })
	if first < 0 || len(line) == 1 {
		return planned
	}
	begun := line[first]
	begun.Standing = spread.Rolling
	s.Set(begun)
	planned.Steps = !slices.ContainsFunc(s.Line(), func(m spread.Member) bool { return s.Room(m, limits) })
	if planned.Steps && begun.First {
		planned.First = p.Serves.nameOf(begun.ID, begun.Namespace)
	}
	return planned
}
