// Package objectname knows how Lockstep writes the name of an object for users: in the output and errors of commands, in
// events, reasons, notes and notifications.
//
// A sentence names an object as "deployment/web in namespace shop", even if the user has named the namespace. A table
// and structured output write "deployment/web" beside a namespace of its own, and so does text below a heading that
// names the namespace, or beside the file and line of a manifest. Commands to copy write "deployment/web -n shop".
package objectname

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind's name: "deployment", "statefulset.apps.kruise.io". Kubernetes' own workloads, and
// Argo Rollouts, go without their group.
func Kind(kind schema.GroupKind) string { return strings.ToLower(kind.Kind) + Suffix(kind) }

// Suffix is the group after the kind's name, empty for a kind that goes without.
func Suffix(kind schema.GroupKind) string {
	switch kind.Group {
	case "", "apps", "batch":
		return ""
	}
	if kind == (schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}) {
		return ""
	}
	return "." + kind.Group
}

// Short is an object's name where its namespace stands beside it: "deployment/web".
func Short(kind schema.GroupKind, name string) string { return Kind(kind) + "/" + name }

// Full is an object's name in a sentence: "deployment/web in namespace shop".
func Full(kind schema.GroupKind, namespace, name string) string {
	return In(Short(kind, name), namespace)
}

// In adds the namespace to a short name. An object of the cluster has none.
func In(short, namespace string) string {
	if namespace == "" {
		return short
	}
	return short + " in namespace " + namespace
}

// OfID is the name in a sentence of a workload that the record calls "Deployment.apps/shop/web".
func OfID(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return id
	}
	return Full(schema.ParseGroupKind(kind), namespace, name)
}
