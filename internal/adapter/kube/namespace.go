package kube

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Namespace is what is kept of a namespace: its settings.
type Namespace struct {
	Name            string
	ResourceVersion string
	Annotations     map[string]string
	// SettingsWritten bounds the last change of Annotations.
	SettingsWritten Bounds
}

// GetObjectMeta lets client-go's stores find the namespace's name.
func (n *Namespace) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion}
}

func (n *Namespace) follow(old *Namespace, arrival arrival) {
	n.SettingsWritten = old.SettingsWritten
	if !n.sameAs(old) {
		n.SettingsWritten = writtenBetween(old.ResourceVersion, n.ResourceVersion, arrival.watched)
	}
}

func (n *Namespace) first(arrival) {
	n.SettingsWritten = writtenUpTo(n.ResourceVersion)
}

func (n *Namespace) sameAs(old *Namespace) bool {
	return maps.Equal(n.Annotations, old.Annotations)
}

func slimNamespace(object any) (*Namespace, error) {
	o, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &Namespace{Name: o.Name, ResourceVersion: o.ResourceVersion, Annotations: ownSettings(o.Annotations, settings.Native{})}, nil
}
