package kube

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Namespace is what is kept of a namespace: its settings.
type Namespace struct {
	Name            string
	ResourceVersion string
	Annotations     map[string]string
	// Deleting is true when everything in it is being deleted.
	Deleting bool
	// AskedAt is when the annotation that asks for workloads to be followed was last
	// written; zero when there is none, or when the managed fields do not tell.
	AskedAt time.Time
	// SettingsWritten bounds the last change of Annotations.
	SettingsWritten timeline.Bounds
}

// GetObjectMeta lets client-go's stores find the namespace's name.
func (n *Namespace) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion}
}

// Follow carries over from the earlier copy what only a comparison can tell.
func (n *Namespace) Follow(old *Namespace, how mirror.Arrival) {
	n.SettingsWritten = old.SettingsWritten
	if !n.SameAs(old) {
		n.SettingsWritten = timeline.WrittenBetween(old.ResourceVersion, n.ResourceVersion, how.Watched)
	}
}

// First bounds what is known of an object that had no earlier copy.
func (n *Namespace) First(mirror.Arrival) {
	n.SettingsWritten = timeline.WrittenUpTo(n.ResourceVersion)
}

// SameAs reports whether the difference between two copies can matter to anyone.
func (n *Namespace) SameAs(old *Namespace) bool {
	return maps.Equal(n.Annotations, old.Annotations)
}

// SlimNamespace makes a Namespace of an API object.
func SlimNamespace(object any) (*Namespace, error) {
	o, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &Namespace{
		Name: o.Name, ResourceVersion: o.ResourceVersion, Deleting: o.DeletionTimestamp != nil,
		Annotations: ownSettings(o, settings.Native{}), AskedAt: askedAt(o),
	}, nil
}
