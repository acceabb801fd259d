package podrefs

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Place is where a pod names a source: the environment of a container, or a volume.
type Place struct {
	Container string
	// Variable gets one key; it is empty when each key becomes a variable.
	Variable string
	Volume   string
}

// Places lists, for each source that the pod names, where it does, for display.
func Places(spec *corev1.PodSpec) map[input.ID][]string {
	found := map[input.ID][]string{}
	visit(spec, func(ref Ref, at Place) {
		found[ref.Source] = append(found[ref.Source], at.words(ref))
	})
	return found
}

// words describes the place and the keys: "env LEVEL of container web (key level)".
func (p Place) words(ref Ref) string {
	keys := " (all keys)"
	switch names := ref.Keys.Names(); len(names) {
	case 0:
	case 1:
		keys = " (key " + names[0] + ")"
	default:
		keys = " (keys " + strings.Join(names, ", ") + ")"
	}
	switch {
	case p.Variable != "":
		return "env " + p.Variable + " of container " + p.Container + keys
	case p.Container != "":
		return "env of container " + p.Container + keys
	case ref.SubPath:
		return "volume " + p.Volume + ", by sub-path" + keys
	}
	return "volume " + p.Volume + keys
}
