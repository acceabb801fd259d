package mirror

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are asked for at a time where lists do not
// stream. Each page is made slim before the next one is asked for.
const pageSize = 250

// pagedVersion makes the API server heed the page size. It answers "any version
// will do" with everything at once, whatever the size asked for: at 17,500
// Secrets of 20 KB that is 350 MB in one piece.
func pagedVersion(resourceVersion string) string {
	if resourceVersion == "0" {
		return ""
	}
	return resourceVersion
}

// listed carries a slim copy through the reflector, which wants API objects.
type listed[T any] struct{ item T }

// GetObjectKind implements runtime.Object.
func (l *listed[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; copies are never changed.
func (l *listed[T]) DeepCopyObject() runtime.Object { return l }

// slimPage puts slim copies in the place of a page's objects. One that cannot be
// read is left out, as everywhere.
func (m *Mirror[T]) slimPage(list client.ObjectList) (runtime.Object, error) {
	page := &internalversion.List{}
	page.ResourceVersion, page.Continue = list.GetResourceVersion(), list.GetContinue()
	page.RemainingItemCount = list.GetRemainingItemCount()
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if item, err := m.options.Slim(object); err == nil {
			page.Items = append(page.Items, &listed[T]{item})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a list of %s: %w", m.options.Name, err)
	}
	return page, nil
}
