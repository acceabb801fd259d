package mirror

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pagedVersion makes the API server respect the page size. For version "0" it returns everything
// at once, regardless of the limit: at 17,500 Secrets of 20 KB that is 350 MB in one response.
func pagedVersion(resourceVersion string) string {
	if resourceVersion == "0" {
		return ""
	}
	return resourceVersion
}

// listed carries a slim copy through the reflector, which needs API objects.
type listed[T any] struct{ item T }

// GetObjectKind implements runtime.Object.
func (l *listed[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; copies are never changed.
func (l *listed[T]) DeepCopyObject() runtime.Object { return l }

// slimPage replaces a page's objects by slim copies. It skips unreadable objects.
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
