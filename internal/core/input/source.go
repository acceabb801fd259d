// Package input knows the words that every kind of input shares: what an input
// is called, what can be said of it for one workload, and the reasons for which
// Lockstep acts or does not.
package input

import (
	"fmt"
	"strings"
)

// Kind is the kind of a configuration source.
type Kind string

// The kinds of configuration sources, spelled as Kubernetes spells them.
const (
	KindConfigMap Kind = "ConfigMap"
	KindSecret    Kind = "Secret"
)

// Source names a ConfigMap or Secret in its workload's namespace.
type Source struct {
	Kind Kind
	Name string
}

// ConfigMap names a ConfigMap.
func ConfigMap(name string) Source {
	return Source{Kind: KindConfigMap, Name: name}
}

// Secret names a Secret.
func Secret(name string) Source {
	return Source{Kind: KindSecret, Name: name}
}

// String is how people and annotations spell a source: "configmap/app".
func (s Source) String() string {
	return strings.ToLower(string(s.Kind)) + "/" + s.Name
}

// ParseSource reads "configmap/app" or "secret/db".
func ParseSource(text string) (Source, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found || name == "" || strings.Contains(name, "/") {
		return Source{}, fmt.Errorf("parse %q: want configmap/NAME or secret/NAME", text)
	}
	switch strings.ToLower(kind) {
	case "configmap":
		return ConfigMap(name), nil
	case "secret":
		return Secret(name), nil
	}
	return Source{}, fmt.Errorf("parse %q: unknown kind %q, want configmap or secret", text, kind)
}
