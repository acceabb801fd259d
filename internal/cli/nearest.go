package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/commandline"
)

// The limits of a list that is only for a hint or a completion.
const (
	nearestTimeout = 2 * time.Second
	nearestLimit   = 5000
)

// notFound reports that the object does not exist, and which objects of its kind have similar
// names. Any other error is returned unchanged.
func notFound(ctx context.Context, c client.Client, t target, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	return fmt.Errorf("%s not found%s", t, nearNames(ctx, c, t))
}

// nearNames is a hint at objects with similar names. Without permission to list them it is
// empty.
func nearNames(ctx context.Context, c client.Client, t target) string {
	names, _ := objectNames(ctx, c, t.GroupVersionKind, t.Namespace)
	return commandline.Hint(t.Name, t.called+"/", names)
}

// objectNames lists the names of one kind's objects in a namespace, within a short time. Kinds
// without namespaces, such as Namespace, take an empty one.
func objectNames(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, namespace string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, nearestTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(nearestLimit)); err != nil {
		return nil, fmt.Errorf("list %s in namespace %s: %w", gvk.Kind, namespace, err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}
