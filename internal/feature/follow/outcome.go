package follow

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// outcome is what a decision left behind, once it was carried out.
type outcome struct {
	decision Decision
	findings []input.Finding
	// kinds are those of the families that were asked.
	kinds []input.Kind
	// searched are the patterns by which they looked for inputs.
	searched []string
	// template is what is known of the pod template, and unrolled is true when the pods are
	// made from another; release is the last release that a person asked for,
	// and hold the hold that counts.
	template Template
	unrolled bool
	release  int64
	hold     record.Hold
	// rolledOut is what the API server said of the patch, zero when there was none, and from
	// tells which revisions the workload had before it.
	rolledOut kube.RolledOut
	from      timeline.Origin
	// rollout is what the workload said of its rollout, and healthy is true when that was
	// done.
	rollout health.Status
	healthy bool
	// told is what people can read of the decision on record, and stillWaits is true when that
	// has been there since an earlier look.
	told       record.Decision
	stillWaits bool
	// before is the workload that was decided on.
	before before
}

// before is what a workload shows of its history.
type before struct {
	// template is what the pod template shows.
	template input.Shown
	// writtenAt is when the workload was last written by anybody, movedAt when we
	// wrote what the template shows, by the API server's clock.
	writtenAt, rolledOutAt time.Time
	// startsFrom is the template that pods were made from.
	startsFrom string
}

// rollsOut reports whether the decision moves an input.
func (o outcome) rollsOut(f input.Finding) bool {
	return contains(o.decision.Due, f.ID)
}

// delivers reports whether the decision gives the workload an input that is due.
func (o outcome) delivers(f input.Finding) bool {
	return o.decision.Delivered && o.rollsOut(f)
}

// loads reports whether the decision's patch starts pods that load the input as it is.
func (o outcome) loads(f input.Finding) bool {
	return o.decision.Verb == RollOut && o.decision.Delivered && (f.Live || o.rollsOut(f))
}
