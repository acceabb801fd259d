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
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Header is what the metadata of a workload says.
type Header struct {
	Key  kube.Key
	Kind kube.Kind
	UID  string
	// Annotations are the workload's own settings for Lockstep, nothing else.
	Annotations map[string]string
}

// headersAtATime bounds how many objects are in memory at once.
const headersAtATime = 500

// Headers lists the workloads of a kind by their metadata, in pages. It is nil for a kind that
// is not installed, and empty for one of which there are none.
func Headers(ctx context.Context, c client.Reader, kind kube.Kind, namespace string, selector labels.Selector) ([]Header, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	found := []Header{}
	for {
		err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(headersAtATime), client.Continue(list.Continue))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.ResourceName(namespace), err)
		}
		for i := range list.Items {
			found = append(found, header(kind, &list.Items[i]))
		}
		if list.Continue == "" {
			return found, nil
		}
	}
}

func header(kind kube.Kind, o metav1.Object) Header {
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
	return h
}
