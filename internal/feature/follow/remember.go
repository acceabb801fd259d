package follow

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// outcome is what a decision left behind, once it was carried out.
type outcome struct {
	decision Decision
	findings []input.Finding
	// template is what the pod template showed before.
	template input.Shown
	// movedAt is the API server's time of the patch, zero when there was none.
	movedAt time.Time
	// movedFrom is the number of the revision before.
	movedFrom int64
}

// remember is the entry after a decision. Inputs that the workload no longer
// follows are dropped; a pending change keeps what was last given.
func remember(e record.Entry, o outcome) record.Entry {
	next := e.Clone()
	next.Inputs = map[input.Source]record.Given{}
	next.PendingSince = o.decision.PendingSince
	if !o.movedAt.IsZero() {
		next.MovedAt, next.MovedFrom = o.movedAt, o.movedFrom
	}
	if o.decision.Verb != Evict || o.decision.Delivered {
		next.EvictFor, next.EvictSince, next.EvictPods = "", time.Time{}, 0
	}
	for _, f := range o.findings {
		given, known := o.given(e, f)
		if known {
			next.Inputs[f.Source] = given
		}
	}
	return next
}

func (o outcome) given(e record.Entry, f input.Finding) (record.Given, bool) {
	given, known := e.Inputs[f.Source]
	if f.Standing == input.Record || f.Standing == input.Due && o.decision.Delivered {
		given.Version, known = f.Current, true
	}
	switch {
	case o.decision.Verb == Move || f.Reason == input.DeliveredBefore:
		given.Shown = f.Shows
	case known && f.Shows != "" && o.template[f.Source] == f.Shows:
		// Whoever wrote it, the template shows what exists.
		given.Shown = f.Shows
	case f.Standing == input.Record && o.template[f.Source] != given.Shown:
		// Somebody else wrote this template; what it shows is not ours to compare.
		given.Shown = ""
	}
	return given, known
}
