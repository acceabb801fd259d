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

// Namespace is the part of a namespace that Lockstep keeps: its settings.
type Namespace struct {
	Name            string
	ResourceVersion string
	Annotations     map[string]string
	// Deleting is true while the namespace is being deleted.
	Deleting bool
	// AskedAt is when the annotation that enables Lockstep for its workloads was last written;
	// zero without the annotation, or when the managed fields don't show it.
	AskedAt time.Time
	// SettingsWritten bounds the last change of Annotations.
	SettingsWritten timeline.Bounds
}

// GetObjectMeta lets client-go's stores find the namespace's name.
func (n *Namespace) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion}
}

// Follow carries over the history that only a comparison with the earlier copy shows.
func (n *Namespace) Follow(old *Namespace, how mirror.Arrival) {
	n.SettingsWritten = old.SettingsWritten
	if !n.SameAs(old) {
		n.SettingsWritten = timeline.WrittenBetween(old.ResourceVersion, n.ResourceVersion, how.Watched)
	}
}

// First sets the bounds for an object without an earlier copy.
func (n *Namespace) First(mirror.Arrival) {
	n.SettingsWritten = timeline.WrittenUpTo(n.ResourceVersion)
}

// SameAs reports whether two copies are equal in everything that matters to Lockstep.
func (n *Namespace) SameAs(old *Namespace) bool {
	return maps.Equal(n.Annotations, old.Annotations)
}

// SlimNamespace makes a Namespace from an API object.
func SlimNamespace(object any) (*Namespace, error) {
	o, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	return &Namespace{
		Name: o.Name, ResourceVersion: o.ResourceVersion, Deleting: o.DeletionTimestamp != nil,
		Annotations: settings.Only(settings.ForNamespaces(), o.Annotations), AskedAt: askedAt(o),
	}, nil
}
