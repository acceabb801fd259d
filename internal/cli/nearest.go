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

// The bounds of a list of names that is only for a hint or a completion.
const (
	nearestTimeout = 2 * time.Second
	nearestLimit   = 5000
)

// notFound says that there is no such object, and which ones of its kind have near names.
// Any other error is returned as it is.
func notFound(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, at client.ObjectKey, called string, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	// Without the right to list there is no hint, and the message is true all the same.
	names, _ := objectNames(ctx, c, gvk, at.Namespace)
	return fmt.Errorf("%s/%s: there is none in namespace %s%s", called, at.Name, at.Namespace, commandline.Hint(at.Name, called+"/", names))
}

// objectNames lists the names of one kind's objects in a namespace, in a short time or not at all.
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
