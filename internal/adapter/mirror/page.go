package mirror

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
)

// listed carries a slim copy through the reflector, which needs API objects.
type listed[T any] struct{ item T }

// GetObjectKind implements runtime.Object.
func (l *listed[T]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; copies are never changed.
func (l *listed[T]) DeepCopyObject() runtime.Object { return l }

// listAll reads all pages of a list and keeps slim copies. It skips unreadable objects. The
// reflector's own pages are not used: if the API server forgets a list halfway, the reflector asks
// for everything in one answer. The list is always the newest one: for version "0" the API server
// returns everything at once, regardless of the limit, which is 350 MB for 17,500 Secrets of 20 KB.
func (m *Mirror[T]) listAll(ctx context.Context, c client.Reader, list client.ObjectList, options client.ListOption) (runtime.Object, error) {
	all := &internalversion.List{}
	for object, err := range pages.Items(ctx, c, list, options) {
		if err != nil {
			return nil, err
		}
		if item, err := m.options.Slim(object); err == nil {
			all.Items = append(all.Items, &listed[T]{item})
		}
	}
	all.ResourceVersion = list.GetResourceVersion()
	return all, nil
}
