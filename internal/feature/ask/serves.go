package ask

import (
	"maps"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// NotWatched is the state of a workload whose namespace the controller does not watch.
const NotWatched = "NotWatched"

// notWatched says the same in words.
const notWatched = "the controller does not watch this namespace"

// Serves is what the controller looks at by its flags. The zero value stands for all of it:
// nothing is known of the flags.
type Serves struct {
	ReloadOff, ImagesOff bool
	// Observe is true for one that writes to no workload.
	Observe bool
	// Kinds are those of the workloads.
	Kinds []kube.Kind
	// Watches reports whether a namespace is watched; nil when nothing is known.
	Watches func(namespace string) bool
}

// Report is what a state is worth: what the controller does not look at may have changed since,
// whatever is on record. Sources and images are what the workload asks for.
func (v Serves) State(s Report, namespace string, sources, images bool) Report {
	sourcesOff, imagesOff := sources && v.ReloadOff, images && v.ImagesOff
	// What is on record besides may be about the inputs that it does follow.
	isOpen := s.IsInStep() || s.From == FromEstimate || sources == sourcesOff && images == imagesOff
	off := func(reason input.Reason) Report {
		return Report{Reason: string(reason), Ends: input.Ends(reason), From: FromFlags}
	}
	switch {
	case !v.watches(namespace):
		return Report{Reason: NotWatched, Message: notWatched, Ends: "the controller watching the namespace, by its flags or a label", From: FromFlags}
	case isOpen && sourcesOff:
		return off(input.ReloadOff)
	case isOpen && imagesOff:
		return off(input.ImagesOff)
	}
	return s
}

// inputs are those of a row. What the controller does not look at is on record from when it
// still did.
func (v Serves) inputs(row Summary, e record.Entry) []InputStatus {
	if row.State.From != FromFlags {
		return row.Inputs
	}
	kept := maps.Clone(e.Inputs)
	maps.DeleteFunc(kept, func(id input.ID, _ record.Delivered) bool {
		return !v.watches(row.Namespace) || id.IsSource() && v.ReloadOff || !id.IsSource() && v.ImagesOff
	})
	return inputsOnRecord(record.Entry{Inputs: kept})
}

func (v Serves) watches(namespace string) bool { return v.Watches == nil || v.Watches(namespace) }

// isPast reports whether a warning about flags is not true any more.
func (v Serves) isPast(reason string) bool {
	return v.Watches != nil && (reason == string(input.ReloadOff) && !v.ReloadOff || reason == string(input.ImagesOff) && !v.ImagesOff)
}

// planned is what a plan is worth: what the controller does not look at it does not move.
func (v Serves) planned(row PlannedWorkload) PlannedWorkload {
	reason, because := input.Reason(NotWatched), notWatched
	switch {
	case v.watches(row.Namespace) && !v.ReloadOff:
		return row
	case v.watches(row.Namespace):
		reason, because = input.ReloadOff, "the controller follows no ConfigMaps and Secrets"
	}
	switch row.Would {
	case WouldStart, WouldNothing, WouldUnfollow, WouldRollByTemplate:
		return row
	case WouldRollTwice:
		row.Would = WouldRollByTemplate
	default:
		row.Would = WouldNothing
	}
	row.Reason, row.Because, row.Rule = reason, because, rule(reason)
	return row
}
