package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// Guest watches more than the cache does, in the same namespaces, and hears of the
// workloads that the cache knows. Its methods must return quickly.
type Guest interface {
	// Enter makes the guest's watches for a namespace, or for all of them together.
	Enter(namespace string) Stay
	// WorkloadIndexed and WorkloadChanged are called as mirror.Options says, with nil
	// for a side that does not exist.
	WorkloadIndexed(old, now *kube.Workload)
	WorkloadChanged(old, now *kube.Workload)
}

// Stay is what a guest watches in one namespace, or in all of them together.
type Stay interface {
	// Run watches until the context ends, and returns when all its watches have ended.
	Run(ctx context.Context, c client.WithWatch)
	// Close is called at once when the namespace is no longer to be watched. Run may take
	// a minute to return, and from Close on nothing in the namespace may be decided on.
	Close()
	// Leave forgets everything. It is called after Close and Run, and not when the
	// process stops.
	Leave()
}

// Join adds a guest, which must be done before Run. Namespaces that are chosen by
// label come and go for it as they do for the cache.
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

// KindStatus tells how well the workloads of a kind can be followed in a namespace; it
// is false where they are not meant to be.
func (c *Cache) KindStatus(kind schema.GroupKind, namespace string) (mirror.Sync, bool) {
	a, ok := c.areas.Of(namespace)
	if !ok || a.workloads[kind] == nil {
		return mirror.Sync{}, false
	}
	return a.workloads[kind].Status(), true
}
