package cluster

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// awaited are the workloads that a decision waits for. The status of a workload changes
// with each of its pods, which concerns only those.
type awaited struct {
	wake func(kube.Key)

	mu   sync.Mutex
	keys map[kube.Key]struct{}
}

func newAwaited(wake func(kube.Key)) *awaited {
	return &awaited{wake: wake, keys: map[kube.Key]struct{}{}}
}

// Await wakes the workload once, with the next change of its status; at once when that
// has changed since this copy.
func (c *Cache) Await(w *kube.Workload) {
	c.awaited.add(w.Key)
	if now, ok := c.Workload(w.Key); ok && now.Status != w.Status && c.awaited.forget(w.Key) {
		c.wake(w.Key)
	}
}

// seen wakes the workload of a copy whose status differs from the one before.
func (a *awaited) seen(old, now *kube.Workload) {
	if old.Status != now.Status && a.forget(now.Key) {
		a.wake(now.Key)
	}
}

func (a *awaited) add(key kube.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[key] = struct{}{}
}

// forget ends the waiting and reports whether there was any.
func (a *awaited) forget(key kube.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, found := a.keys[key]
	delete(a.keys, key)
	return found
}
