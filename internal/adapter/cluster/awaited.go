package cluster

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// awaited holds the workloads for which a decision waits on their controller. A workload's
// status changes with each of its pods, and only these workloads need that.
type awaited struct {
	wake func(kube.Key)

	mu sync.Mutex
	// keys is true for a workload that is awaited only until its health changes.
	keys map[kube.Key]bool
}

func newAwaited(wake func(kube.Key)) *awaited {
	return &awaited{wake: wake, keys: map[kube.Key]bool{}}
}

// Await wakes the workload once, when its controller next reports progress. If it already did
// since this copy, Await wakes the workload immediately. The last call for a workload counts.
func (c *Cache) Await(w *kube.Workload) { c.await(w, false) }

// AwaitHealth wakes the workload once, when its state of health changes. If its controller
// reported anything since this copy, AwaitHealth wakes the workload immediately.
func (c *Cache) AwaitHealth(w *kube.Workload) { c.await(w, true) }

func (c *Cache) await(w *kube.Workload, healthOnly bool) {
	c.awaited.add(w.Key, healthOnly)
	if now, ok := c.Workload(w.Key); ok && !now.SameProgress(w) && c.awaited.forget(w.Key) {
		c.wake(w.Key)
	}
}

// seen wakes the workload if the new copy shows what is awaited.
func (a *awaited) seen(old, now *kube.Workload) {
	if !now.SameProgress(old) && a.isOver(old, now) && a.forget(now.Key) {
		a.wake(now.Key)
	}
}

// isOver reports whether the workload isn't awaited for a change of its health that is still to
// come.
func (a *awaited) isOver(old, now *kube.Workload) bool {
	a.mu.Lock()
	healthOnly := a.keys[now.Key]
	a.mu.Unlock()
	return !healthOnly || !now.SameHealth(old)
}

func (a *awaited) add(key kube.Key, healthOnly bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[key] = healthOnly
}

// forget stops waiting for the workload and reports whether a decision was waiting.
func (a *awaited) forget(key kube.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, found := a.keys[key]
	delete(a.keys, key)
	return found
}
