package patcher

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// ownerLevels limits the levels between a pod and its workload. With an operator that makes a
// Deployment, two objects are between the operator's object and the pod.
const ownerLevels = 4

// owners finds out whether pods belong to one workload, by reading the objects in between. Few
// objects control many pods, so each is read once.
type owners struct {
	client    client.Client
	namespace string
	// known is true for a workload of a kind whose pod controller Lockstep knows.
	known bool
	// leads holds the results by the UID of a controlling object.
	leads map[types.UID]bool
}

func newOwners(c client.Client, w *kube.Workload) *owners {
	return &owners{
		client: c, namespace: w.Key.Namespace,
		known: !w.Kind.Custom,
		leads: map[types.UID]bool{types.UID(w.UID): true},
	}
}

// lead reports whether the controllers above an object lead to the workload.
func (o *owners) lead(ctx context.Context, controller *metav1.OwnerReference) (bool, error) {
	return o.climb(ctx, controller, ownerLevels)
}

func (o *owners) climb(ctx context.Context, ref *metav1.OwnerReference, levels int) (bool, error) {
	if ref == nil || levels == 0 {
		return false, nil
	}
	if leads, ok := o.leads[ref.UID]; ok {
		return leads, nil
	}
	if o.known && ref.Kind != "ReplicaSet" {
		// A Job, for example, which has the application's labels and which Lockstep may lack
		// permission to read.
		return false, nil
	}
	above, err := o.find(ctx, ref)
	if err != nil {
		return false, err
	}
	leads := false
	if above != nil {
		leads, err = o.climb(ctx, kube.ControllerOf(above), levels-1)
	}
	if err == nil {
		o.leads[ref.UID] = leads
	}
	return leads, err
}

// find returns the referenced object, nil when it is gone or another object has its name. It
// lists by name: Lockstep already has permission to list revisions, but not to get them.
func (o *owners) find(ctx context.Context, ref *metav1.OwnerReference) (metav1.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind+"List"))
	err := o.client.List(ctx, list, client.InNamespace(o.namespace), client.MatchingFields{"metadata.name": ref.Name})
	if err != nil {
		return nil, fmt.Errorf("find %s %s: %w", ref.Kind, ref.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].UID == ref.UID {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
