package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Header is the metadata of a workload.
type Header struct {
	Key  kube.Key
	Kind kube.Kind
	UID  string
	// Annotations are only the workload's settings for Lockstep.
	Annotations map[string]string
}

// Headers lists the metadata of a kind's workloads, in pages. It returns nil for a kind that
// isn't installed, and an empty slice when there are no workloads of the kind.
func Headers(ctx context.Context, c client.Reader, kind kube.Kind, namespace string, selector labels.Selector) ([]Header, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	found := []Header{}
	for o, err := range pages.Items(ctx, c, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.ResourceName(namespace), err)
		}
		found = append(found, HeaderOf(kind, o))
	}
	return found, nil
}

// HeaderOf is the part of a workload's metadata that counts.
func HeaderOf(kind kube.Kind, o metav1.Object) Header {
	h := Header{
		Key:  kube.Key{GroupKind: kind.GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()},
		Kind: kind, UID: string(o.GetUID()),
	}
	for key, value := range o.GetAnnotations() {
		if (settings.Native{}).Knows(key, nil) {
			if h.Annotations == nil {
				h.Annotations = map[string]string{}
			}
			h.Annotations[key] = value
		}
	}
	h.Annotations = settings.Limit(h.Annotations)
	return h
}
