package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// Guest watches additional objects in the same namespaces as the cache, and is notified of the
// cache's workloads. Its methods must return quickly.
type Guest interface {
	// Enter makes the guest's watches for a namespace, or for all of them together.
	Enter(namespace string) Stay
	// WorkloadIndexed and WorkloadChanged are called as described in mirror.Options, with nil
	// for a side that does not exist.
	WorkloadIndexed(old, now *kube.Workload)
	WorkloadChanged(old, now *kube.Workload)
}

// Stay is a guest's watches in one namespace, or in all of them together.
type Stay interface {
	// Run watches until the context ends, and returns when all its watches have ended.
	Run(ctx context.Context, c client.WithWatch)
	// Close is called as soon as the namespace is no longer watched. Run may take a minute to
	// return, and after Close nothing in the namespace may be decided on.
	Close()
	// Leave forgets everything. It is called after Close and Run, and not when the
	// process stops.
	Leave()
}

// Join adds a guest. It must be called before Run. For namespaces selected by label, the guest
// enters and leaves together with the cache.
func (c *Cache) Join(g Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guests = append(c.guests, g)
	for _, a := range c.areas.All() {
		a.stays = append(a.stays, g.Enter(a.namespace))
	}
}

// Kinds are the kinds of workloads that the cache watches.
func (c *Cache) Kinds() []kube.Kind {
	return c.options.Kinds
}

// KindStatus reports how well a kind of workload can be watched in a namespace; it is false
// where the kind isn't watched.
func (c *Cache) KindStatus(kind schema.GroupKind, namespace string) (mirror.Sync, bool) {
	a, ok := c.areas.Of(namespace)
	if !ok || a.workloads[kind] == nil {
		return mirror.Sync{}, false
	}
	return a.workloads[kind].Status(), true
}
