package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// FindKind finds a kind as kubectl does: by "deployment", "deployments", "deploy" or
// "deployment.apps", ignoring case. It returns the first match.
func FindKind(kinds []Kind, name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.isCalled(strings.ToLower(name)) })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// NameOf is a workload's name as programs write it: "deployment/web" for deploy/web. A kind that
// isn't among them stays as it is.
func NameOf(kinds []Kind, name string) string {
	called, rest, _ := strings.Cut(name, "/")
	if kind, known := FindKind(kinds, called); known {
		called = kind.Name()
	}
	return strings.ToLower(called) + "/" + rest
}

func (k Kind) isCalled(name string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	for _, known := range []string{singular.Resource, plural.Resource} {
		if name == known || k.Group != "" && name == known+"."+strings.ToLower(k.Group) {
			return true
		}
	}
	return slices.Contains(k.ShortNames, name)
}

// ParseKind reads "group/version/Kind=path.to.template". The core group is
// written as "v1/Kind=…".
func ParseKind(text string) (Kind, error) {
	name, path, found := strings.Cut(text, "=")
	parts := strings.Split(name, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if !found || len(parts) != 3 || parts[1] == "" || parts[2] == "" || !isPath(path) {
		return Kind{}, fmt.Errorf("parse kind %q: want group/version/Kind=path.to.template, such as example.com/v1/Worker=spec.template", text)
	}
	return customKind(schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}, path), nil
}

func isPath(path string) bool {
	for field := range strings.SplitSeq(path, ".") {
		if field == "" {
			return false
		}
	}
	return true
}

// String is the form that ParseKind reads.
func (k Kind) String() string {
	return fmt.Sprintf("%s/%s=%s", k.GroupVersion(), k.Kind, k.Template)
}

// Name is the kind's name for users: "deployment", "statefulset.apps.kruise.io".
func (k Kind) Name() string {
	return objectname.Kind(k.GroupKind())
}

// ResourceName is the kind's resource for users: "deployments in shop",
// "statefulsets.apps.kruise.io".
func (k Kind) ResourceName(namespace string) string {
	return inNamespace(strings.ToLower(k.Kind)+"s"+objectname.Suffix(k.GroupKind()), namespace)
}

// ResourceName is a resource for users: "configmaps", "secrets in shop".
func ResourceName(kind, namespace string) string {
	plural := "s"
	if strings.HasSuffix(kind, "s") {
		plural = "es"
	}
	return inNamespace(strings.ToLower(kind)+plural, namespace)
}

func inNamespace(name, namespace string) string {
	if namespace == "" {
		return name
	}
	return name + " in " + namespace
}

// lenderNames lists the kinds whose template the workload may use.
func (k Kind) lenderNames() string {
	names := make([]string, len(k.Lenders))
	for i, lender := range k.Lenders {
		names[i] = lender.Kind
	}
	return strings.Join(names, " or a ")
}
