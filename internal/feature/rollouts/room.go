package rollouts

import (
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// room is how much space the entry may need after the decision: for the inputs that the
// workload follows, its hold, and inputs that no family here knows.
func (in Observation) room() int {
	hold := in.holdOnRecord()
	if hold == in.Entry.Hold && in.followsWhatIsOnRecord() {
		return in.Entry.Room()
	}
	next := without(in.Entry, in.Kinds, in.State.Unrolled)
	next.Hold = hold
	for _, f := range in.Findings {
		next.Inputs[f.ID] = in.Entry.Inputs[f.ID]
	}
	return next.Room()
}

// followsWhatIsOnRecord reports whether the workload follows exactly the inputs of the
// entry.
func (in Observation) followsWhatIsOnRecord() bool {
	return len(in.Findings) == len(in.Entry.Inputs) && !slices.ContainsFunc(in.Findings, func(f input.Finding) bool {
		_, known := in.Entry.Inputs[f.ID]
		return !known
	})
}

// without is a copy of the entry without inputs of the kinds, unless they are all kept.
func without(e record.Entry, kinds []input.Kind, kept bool) record.Entry {
	next := e.Clone()
	if !kept {
		maps.DeleteFunc(next.Inputs, func(id input.ID, _ record.Delivered) bool { return slices.Contains(kinds, id.Kind) })
	}
	return next
}
