package ask

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// NotWatched is the state of a workload whose namespace the controller does not watch.
const NotWatched = "NotWatched"

// Serves is what the controller looks at by its flags. The zero value stands for all of it:
// nothing is known of the flags.
type Serves struct {
	ReloadOff, ImagesOff bool
	// Kinds are those of the workloads.
	Kinds []kube.Kind
	// Watches reports whether a namespace is watched; nil when all are.
	Watches func(namespace string) bool
}

// State is what a state is worth: what the controller does not look at may have changed since,
// whatever is on record. Sources and images are what the workload asks for.
func (v Serves) State(s State, namespace string, sources, images bool) State {
	off := func(reason input.Reason) State {
		return State{Reason: string(reason), Ends: input.Ends(reason), From: FromFlags}
	}
	switch isOpen := s.IsInStep() || s.From == FromEstimate; {
	case v.Watches != nil && !v.Watches(namespace):
		return State{
			Reason: NotWatched, Message: "the controller does not watch this namespace",
			Ends: "a controller that watches the namespace", From: FromFlags,
		}
	case isOpen && sources && v.ReloadOff:
		return off(input.ReloadOff)
	case isOpen && images && v.ImagesOff:
		return off(input.ImagesOff)
	}
	return s
}
