package rollouts

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// onPods is the common part of the strategies that work on pods and leave the pod template
// as it is.
type onPods struct{}

func (onPods) changesTemplate() bool { return false }

// objects when the controller isn't permitted to use the strategy, or when everything that
// is due comes with the template.
func (onPods) objects(s situation) (Decision, bool) {
	if off := s.strategyOff(); off != "" {
		return s.held(input.StrategyOff, off), true
	}
	return s.held(input.BeyondStrategy, s.beyondStrategy()), len(s.draft.Due) == 0
}

// strategyOff explains why the strategy can't be used here, empty when it can.
func (s situation) strategyOff() string {
	if s.strategy.changesTemplate() || s.Pods.Off == "" {
		return ""
	}
	return fmt.Sprintf("annotation %s: %s is off in this controller; %s", settings.Strategy, s.Intent.Strategy, s.Pods.Off)
}

// beyondStrategy names the due inputs that the strategy can't deliver, empty when it can
// deliver all of them.
func (s situation) beyondStrategy() string {
	beyond := matching(s.Findings, func(f input.Finding) bool { return f.Standing == input.Due && !f.Live })
	if s.strategy.changesTemplate() || len(beyond) == 0 {
		return ""
	}
	return fmt.Sprintf("annotation %s: %s does not change the pod template, and %s is part of it", settings.Strategy, s.Intent.Strategy, names(beyond))
}
