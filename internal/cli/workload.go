package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// parseWorkload reads "deployment/web", "deploy/web" and "statefulset.apps.kruise.io/db", as
// kubectl does. Of two kinds with the same name the earlier one counts.
func parseWorkload(text, namespace string, kinds []kube.Kind) (kube.Kind, types.NamespacedName, error) {
	called, name, found := strings.Cut(text, "/")
	if !found || name == "" {
		return kube.Kind{}, types.NamespacedName{}, fmt.Errorf("workload %q: want KIND/NAME, such as deployment/web", text)
	}
	kind, known := kube.FindKind(kinds, called)
	if !known {
		return kube.Kind{}, types.NamespacedName{}, unknownKind(text, called, kinds)
	}
	if err := inNamespace(name, namespace); err != nil {
		return kube.Kind{}, types.NamespacedName{}, fmt.Errorf("workload %q: %w", text, err)
	}
	return kind, types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// unknownKindError names a kind that is not followed.
type unknownKindError struct {
	error
	// hinted is true when the error suggests a kind.
	hinted bool
}

// unknownKind suggests a kind, or lists the known ones.
func unknownKind(text, called string, kinds []kube.Kind) error {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.Name()
	}
	if hint := commandline.Hint(called, "", names); hint != "" {
		return unknownKindError{fmt.Errorf("workload %q: unknown kind %q%s", text, called, hint), true}
	}
	return unknownKindError{fmt.Errorf("workload %q: unknown kind %q, want one of %s", text, called, strings.Join(kindNames(kinds), ", ")), false}
}

// kindNames are the kinds' names for users, with kubectl's short names.
func kindNames(kinds []kube.Kind) []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.Name()
		if len(kind.ShortNames) > 0 {
			names[i] += " (" + strings.Join(kind.ShortNames, ", ") + ")"
		}
	}
	return names
}

// otherNamespaceError is a name of an object in another namespace.
type otherNamespaceError struct{ error }

// inNamespace refuses invalid object names, above all names of objects in another namespace.
func inNamespace(name, namespace string) error {
	if other, _, qualified := strings.Cut(name, "/"); qualified {
		return otherNamespaceError{fmt.Errorf("it is in namespace %s, not %s", other, namespace)}
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("invalid name: %s", wrong[0])
	}
	return nil
}
