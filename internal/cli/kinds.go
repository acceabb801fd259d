package cli

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// allKinds are the default kinds and those that flags add. A repeated kind would be watched
// twice, with two template paths.
func allKinds(flags []string) ([]kube.Kind, error) {
	kinds := kube.Kinds()
	for _, text := range flags {
		kind, err := kube.ParseKind(text)
		if err != nil {
			return nil, fmt.Errorf("--kind: %w", err)
		}
		for _, known := range kinds {
			if known.GroupKind() == kind.GroupKind() {
				return nil, fmt.Errorf("--kind %s: this kind is followed already, as %s", text, known)
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
