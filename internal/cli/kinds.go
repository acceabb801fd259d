package cli

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// allKinds are the kinds that are followed anyway and those that flags name. One
// that is named again would be watched twice, with two ideas of its template.
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
