package rollouts

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// outcome is the result of a decision that was carried out.
type outcome struct {
	decision Decision
	findings []input.Finding
	// kinds are those of the families that were queried.
	kinds []input.Kind
	// searched are the patterns by which they search for inputs.
	searched []string
	// template is what is known about the pod template, and unrolled is true when pods are
	// created from another. release is the last release that a user requested, and hold the
	// hold that counts.
	template Template
	unrolled bool
	release  int64
	hold     record.Hold
	// rolledOut is the API server's answer to the patch, zero when there was none, and from
	// lists which revisions the workload had before it.
	rolledOut kube.RolledOut
	from      timeline.Origin
	// rollout is the rollout status that the workload reported, and healthy is true when
	// the rollout was done.
	rollout health.Status
	healthy bool
	// recorded is the decision that the record shows to users, and stillWaits is true when an
	// earlier reconciliation recorded it.
	recorded   record.Decision
	stillWaits bool
	// before is the workload that was decided on.
	before before
}

// before is what a workload shows of its history.
type before struct {
	// template is the pod template's marks.
	template input.Shown
	// writtenAt is when any writer last wrote the workload, rolledOutAt when Lockstep
	// wrote the template's marks, by the API server's clock.
	writtenAt, rolledOutAt time.Time
	// startsFrom is the template that pods were created from.
	startsFrom string
	// turn is how the rollout on trial stands, and whether the decision begins one.
	turn TurnState
}

// rollsOut reports whether the decision rolls out an input.
func (o outcome) rollsOut(f input.Finding) bool {
	return contains(o.decision.Due, f.ID)
}

// delivers reports whether the decision delivers a due input.
func (o outcome) delivers(f input.Finding) bool {
	return o.decision.Delivered && o.rollsOut(f)
}

// loads reports whether the decision's patch starts pods that load the input's current
// version.
func (o outcome) loads(f input.Finding) bool {
	return o.decision.Verb == RollOut && o.decision.Delivered && (f.Live || o.rollsOut(f))
}
