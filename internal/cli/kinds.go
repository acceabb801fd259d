package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// builtInNames are the names of the default kinds.
func builtInNames() []string {
	var names []string
	for _, kind := range kube.Kinds() {
		names = append(names, kind.Name())
	}
	return names
}

// followed are the built-in kinds of the flag, and the further ones.
func (f scopeFlags) followed() ([]kube.Kind, error) {
	kinds, err := allKinds(f.kinds)
	if err != nil {
		return nil, err
	}
	var on []kube.Kind
	for _, name := range f.builtIn {
		kind, known := kube.FindKind(kube.Kinds(), strings.TrimSpace(name))
		if !known {
			return nil, fmt.Errorf("--built-in-kinds %q: want some of %s", name, strings.Join(builtInNames(), ", "))
		}
		on = append(on, kind)
	}
	kinds = slices.DeleteFunc(kinds, func(k kube.Kind) bool { return !k.Custom && !kube.HasKind(on, k.GroupKind()) })
	if len(kinds) == 0 {
		return nil, errors.New("--built-in-kinds: no kind of workload remains to follow")
	}
	return kinds, nil
}

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
				return nil, fmt.Errorf("--kind %s: this kind is known already, as %s", text, known)
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
