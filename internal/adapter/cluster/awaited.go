package cluster

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// awaited holds the workloads for which a decision waits on their controller. A workload's
// status changes with each of its pods, and only these workloads need that.
type awaited struct {
	wake func(kube.Key)

	mu   sync.Mutex
	keys map[kube.Key]struct{}
}

func newAwaited(wake func(kube.Key)) *awaited {
	return &awaited{wake: wake, keys: map[kube.Key]struct{}{}}
}

// Await wakes the workload once, when its controller next reports progress. If it already did
// since this copy, Await wakes the workload immediately.
func (c *Cache) Await(w *kube.Workload) {
	c.awaited.add(w.Key)
	if now, ok := c.Workload(w.Key); ok && !now.SameProgress(w) && c.awaited.forget(w.Key) {
		c.wake(w.Key)
	}
}

// seen wakes the workload if the new copy shows progress since the old one.
func (a *awaited) seen(old, now *kube.Workload) {
	if !now.SameProgress(old) && a.forget(now.Key) {
		a.wake(now.Key)
	}
}

func (a *awaited) add(key kube.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys[key] = struct{}{}
}

// forget stops waiting for the workload and reports whether a decision was waiting.
func (a *awaited) forget(key kube.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, found := a.keys[key]
	delete(a.keys, key)
	return found
}
