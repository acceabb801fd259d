package follow

import (
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// evictionCheck is how often a series of evictions looks whether the workload is
// available again.
const evictionCheck = 2 * time.Second

func strategyOff(s situation) (Decision, bool) {
	if !s.usesPods() || s.PodsOff == "" {
		return Decision{}, false
	}
	return s.held(input.StrategyOff, s.strategyOff()), true
}

func (in Input) strategyOff() string {
	return fmt.Sprintf("annotation %s: %s is switched off here; %s", settings.Strategy, in.Intent.Strategy, in.PodsOff)
}

// beyondStrategy: evict and refresh do not change the pod template, so they cannot
// deliver what comes with it.
func beyondStrategy(s situation) (Decision, bool) {
	if !s.usesPods() || len(s.draft.Moves) > 0 {
		return Decision{}, false
	}
	return s.held(input.BeyondStrategy, s.beyond()), true
}

// beyond says what the strategy cannot deliver, empty when there is nothing.
func (in Input) beyond() string {
	if !in.usesPods() {
		return ""
	}
	beyond := matching(in.Findings, func(f input.Finding) bool { return f.Standing == input.Due && !f.Live })
	if len(beyond) == 0 {
		return ""
	}
	return fmt.Sprintf("annotation %s: %s does not change the pod template, and %s comes with it", settings.Strategy, in.Intent.Strategy, names(beyond))
}

// evicted: the series is on record before the first pod goes, so that a restart
// continues it and does not begin it again. It is over when no pod is older.
func evicted(s situation) (Decision, bool) {
	if !s.usesPods() || s.Intent.Strategy != settings.StrategyEvict {
		return Decision{}, false
	}
	d := s.draft.as(Evict, input.Evicting)
	d.Recheck = evictionCheck
	d.Eviction.For = s.order(d).Shown(s.Shown).String()
	if s.Entry.EvictFor != d.Eviction.For || s.Entry.EvictSince.IsZero() {
		d.Eviction.Begin = true
		if s.Replicas == 0 {
			// Without it the gap between a pod and its successor would not be seen.
			d.Eviction.Pods = pods.Running(s.Pods)
		}
		return d, true
	}
	if s.PodsProblem != nil {
		return d, true
	}
	victim, done := pods.NextEviction(s.Pods, max(s.Replicas, s.Entry.EvictPods), s.Entry.EvictSince)
	if done {
		d.Recheck, d.Reason = 0, input.Evicted
		return s.delivered(d), true
	}
	d.Eviction.Victim = victim
	return d, true
}

// refreshed: a refresh delivers at once. What it does not reach is told, and counts as
// given: only a restart would repeat it, and the settings ask for none.
func refreshed(s situation) (Decision, bool) {
	d := s.draft.as(Refresh, input.NotRefreshable)
	if mounted := mounted(d.Moves); len(mounted) > 0 {
		d.Reason, d.Message = input.Refreshed, changes(mounted)
	}
	return s.delivered(d), s.usesPods() && s.Intent.Strategy == settings.StrategyRefresh
}
