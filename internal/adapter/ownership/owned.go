package ownership

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Owned is the metadata of a ConfigMap or Secret that belongs to revisions. Lockstep never
// receives the content. It never changes after it was stored.
type Owned struct {
	Key             ObjectKey
	UID             string
	ResourceVersion string
	Created         time.Time
	Deleting        bool
	// Owners are the UIDs of its owners, at most maxOwners.
	Owners []string
}

// maxOwners bounds the owners that are kept of one object. One beyond counts as missing, and
// Lockstep adds it again, which doesn't change the object.
const maxOwners = 256

// GetObjectMeta lets client-go's stores find the object's name.
func (o *Owned) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: o.Key.Namespace, Name: o.Key.Source.Name, ResourceVersion: o.ResourceVersion}
}

// SameAs reports whether two copies are equal in everything that matters to Lockstep.
func (o *Owned) SameAs(old *Owned) bool {
	return o.UID == old.UID && o.Deleting == old.Deleting && slices.Equal(o.Owners, old.Owners)
}

// slimOwned makes an Owned from an object's metadata.
func slimOwned(kind input.Kind, object any) (*Owned, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("unexpected type %T", object)
	}
	o := &Owned{
		Key: ObjectKey{Namespace: m.Namespace, Source: input.ID{Kind: kind, Name: m.Name}},
		UID: string(m.UID), ResourceVersion: m.ResourceVersion, Created: m.CreationTimestamp.Time,
		Deleting: m.DeletionTimestamp != nil,
	}
	for _, owner := range m.OwnerReferences[:min(maxOwners, len(m.OwnerReferences))] {
		o.Owners = append(o.Owners, kube.Cut(string(owner.UID)))
	}
	return o, nil
}

// Reference is the object reference for events.
func (o *Owned) Reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: string(o.Key.Source.Kind), Namespace: o.Key.Namespace, Name: o.Key.Source.Name,
		UID: types.UID(o.UID), ResourceVersion: o.ResourceVersion,
	}
}
