package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Reread reads a workload from the API server, with the template that it borrows: the watch may
// be late. The copy has no history.
func (c *Cache) Reread(ctx context.Context, w *kube.Workload) (*kube.Workload, error) {
	own, err := c.readAgain(ctx, w.Kind, w.Key)
	if err != nil || own.Borrows == (kube.Key{}) || own.Borrows != w.Borrows {
		return own, err
	}
	lender, err := c.readAgain(ctx, w.Target.Kind, own.Borrows)
	if err != nil {
		return nil, err
	}
	return own.Resolved(func(kube.Key) (*kube.Workload, bool) { return lender, true }), nil
}

// readAgain lists one object as the watch does, with the same selector: the controller may list
// workloads, and doesn't need another permission.
func (c *Cache) readAgain(ctx context.Context, kind kube.Kind, key kube.Key) (*kube.Workload, error) {
	list := kind.NewList()
	options := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
	if c.options.Workloads != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: c.options.Workloads})
	}
	if err := c.client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("read %s again: %w", key, err)
	}
	var found runtime.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		found = item
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s again: %w", key, err)
	}
	if found == nil {
		return nil, fmt.Errorf("%s is gone", key)
	}
	return kube.SlimWorkload(kind, found, c.options.Vocabulary)
}
