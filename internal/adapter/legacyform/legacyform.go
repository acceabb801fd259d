// Package legacyform knows how kubernetes-reloader shows the delivered content in a pod
// template: one environment variable for each source.
package legacyform

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/legacy"
	"github.com/lockstep-dev/lockstep/internal/core/patch"
)

// Form writes the variables of kubernetes-reloader. Its digests aren't versions, so Form looks
// them up.
type Form struct {
	Source func(namespace string, id input.ID) (*kube.Source, bool)
}

// Variables sets an environment variable with the SHA-1 of each changed source, in the container
// that already has the variable or in the first one. A source that has changed since the
// decision is a conflict.
func (form Form) Variables(w *kube.Workload, order input.Order) ([]patch.Change, error) {
	variables := make([]patch.Change, 0, len(order.Due))
	all := make([]input.ID, len(order.All))
	for i, f := range order.All {
		all[i] = f.ID
	}
	for _, f := range order.Due {
		v := w.Place(variable(w, f.ID, all))
		source, ok := form.Source(w.Key.Namespace, f.ID)
		if !ok || source.Content.Version(fingerprint.AllKeys()) != f.Current {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: string(f.ID.Kind)}, f.ID.Name, errors.New("it has changed since"))
		}
		v.Value = value(source.Legacy, f.Current, marker(w, v))
		variables = append(variables, v)
	}
	return variables, nil
}

// value is the SHA-1. If the template already shows it (the SHA-1 doesn't cover binary data, and
// has collisions), a part of the strong digest is added, so the template changes. If the
// template shows that too, because it was reverted, the part is left out again.
func value(sum string, current fingerprint.Version, shown string) string {
	strong := sum + "-" + current.Short()
	if shown != strong && (shown == sum || strings.HasPrefix(shown, sum+"-")) {
		return strong
	}
	return sum
}

// variable is the source's variable. It gets a distinct name when another source of the workload
// has the same variable, or when the user has a variable of that name with a valueFrom.
func variable(w *kube.Workload, s input.ID, all []input.ID) string {
	plain := legacy.SourceVariable(s, false)
	shared := hasForeign(w, plain)
	for _, other := range all {
		shared = shared || other != s && legacy.SourceVariable(other, false) == plain
	}
	return legacy.SourceVariable(s, shared)
}

// Shows reports whether the template shows the source's current content: the strong form proves
// it by itself, the SHA-1 only where the state has another one.
func Shows(w *kube.Workload, s *kube.Source, listed []input.ID, sum string) bool {
	name := variable(w, s.ID, listed)
	strong := s.Legacy + "-" + s.Content.Version(fingerprint.AllKeys()).Short()
	for _, c := range w.Containers {
		if m, ok := c.Markers[name]; ok && (m.Value == strong || m.Value == s.Legacy && sum != s.Legacy) {
			return true
		}
	}
	return false
}

func hasForeign(w *kube.Workload, name string) bool {
	for _, c := range w.Containers {
		if m, ok := c.Markers[name]; ok && m.Foreign {
			return true
		}
	}
	return false
}

// marker is the current value at the variable's position, empty when it is new.
func marker(w *kube.Workload, v patch.SetVariable) string {
	if v.Index < 0 {
		return ""
	}
	return w.Containers[v.Container].Markers[v.Name].Value
}
