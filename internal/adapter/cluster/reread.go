package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/pages"
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
	options := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}}
	if c.options.Workloads != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: c.options.Workloads})
	}
	for o, err := range pages.Items(ctx, c.client, kind.NewList(), options...) {
		if err != nil {
			return nil, fmt.Errorf("read %s again: %w", key, err)
		}
		return kube.SlimWorkload(kind, o, c.options.Vocabulary)
	}
	return nil, fmt.Errorf("%s is gone", key)
}
