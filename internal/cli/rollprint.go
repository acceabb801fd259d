package cli

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// wouldRoll describes what a rollout would do.
func wouldRoll(rollout health.Status, shown input.Shown) string {
	switch {
	case rollout.Paused:
		return fmt.Sprintf("would get a new pod template: %s; it is paused (spec.paused), and its rollout would begin when you resume it", shown)
	case rollout.RollsByHand():
		return fmt.Sprintf("would get a new pod template: %s; %s", shown, rollout.Hand())
	}
	return fmt.Sprintf("would be rolled out: %s", shown)
}

// rolled describes what a rollout does.
func rolled(rollout health.Status, shown input.Shown) string {
	switch {
	case rollout.Paused:
		return fmt.Sprintf("has a new pod template: %s; it is paused (spec.paused), and its rollout begins when you resume it", shown)
	case rollout.RollsByHand():
		return fmt.Sprintf("has a new pod template: %s; %s", shown, rollout.Hand())
	}
	return fmt.Sprintf("rolled out: %s", shown)
}
