package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/objectname"
)

// Key names one workload of the cluster.
type Key struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// String is the name in a sentence: "deployment/web in namespace shop".
func (k Key) String() string { return objectname.Full(k.GroupKind, k.Namespace, k.Name) }

// Short is the name beside its namespace: "deployment/web".
func (k Key) Short() string { return objectname.Short(k.GroupKind, k.Name) }

// Log is the value of a structured log's attribute: "Deployment/shop/web".
func (k Key) Log() string {
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// ID names the workload in the record: "Deployment.apps/shop/web".
func (k Key) ID() string {
	return k.GroupKind.String() + "/" + k.Namespace + "/" + k.Name
}

// ParseID parses the form that ID writes.
func ParseID(id string) (Key, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return Key{}, fmt.Errorf("parse workload %q: want Kind.group/namespace/name", id)
	}
	return Key{GroupKind: schema.ParseGroupKind(parts[0]), Namespace: parts[1], Name: parts[2]}, nil
}
