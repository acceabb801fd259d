// Package input defines the terms that every kind of input shares: how an input is named,
// what is known about it for one workload, and the reasons why Lockstep acts or doesn't.
package input

import (
	"fmt"
	"strings"
)

// Kind is a kind of input.
type Kind string

// The kinds of inputs. Those that are objects are spelled as Kubernetes spells them.
const (
	KindConfigMap Kind = "ConfigMap"
	KindSecret    Kind = "Secret"
	KindImage     Kind = "Image"
)

// ID names one input of a workload: a ConfigMap or Secret of its namespace, or the
// image of one of its containers.
type ID struct {
	Kind Kind
	Name string
}

// ConfigMap names a ConfigMap.
func ConfigMap(name string) ID {
	return ID{Kind: KindConfigMap, Name: name}
}

// Secret names a Secret.
func Secret(name string) ID {
	return ID{Kind: KindSecret, Name: name}
}

// Image names the image of a container.
func Image(container string) ID {
	return ID{Kind: KindImage, Name: container}
}

// IsSource reports whether the input is a ConfigMap or Secret.
func (id ID) IsSource() bool {
	return id.Kind == KindConfigMap || id.Kind == KindSecret
}

// String is how users and annotations spell an input: "configmap/app".
func (id ID) String() string {
	return strings.ToLower(string(id.Kind)) + "/" + id.Name
}

// ParseID parses String's output: "configmap/app", "secret/db", "image/web".
func ParseID(text string) (ID, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found || name == "" || strings.Contains(name, "/") {
		return ID{}, fmt.Errorf("parse %q: want KIND/NAME, such as configmap/app", text)
	}
	switch strings.ToLower(kind) {
	case "configmap":
		return ConfigMap(name), nil
	case "secret":
		return Secret(name), nil
	case "image":
		return Image(name), nil
	}
	return ID{}, fmt.Errorf("parse %q: unknown kind %q, want configmap, secret or image", text, kind)
}

// ParseSource parses the ID of a ConfigMap or Secret.
func ParseSource(text string) (ID, error) {
	id, err := ParseID(text)
	if err != nil || !id.IsSource() {
		return ID{}, fmt.Errorf("parse %q: want configmap/NAME or secret/NAME", text)
	}
	return id, nil
}
