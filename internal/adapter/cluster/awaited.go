package cluster

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// awaited are the workloads whose controller a decision waits for. The status of a workload
// changes with each of its pods, which concerns only those.
type awaited struct {
	wake func(kube.Key)

	mu   sync.Mutex
	keys map[kube.Key]struct{}
}

func newAwaited(wake func(kube.Key)) *awaited {
	return &awaited{wake: wake, keys: map[kube.Key]struct{}{}}
}

// Await wakes the workload once, with the next change that its controller notes; at once when
// there was one since this copy.
func (c *Cache) Await(w *kube.Workload) {
	c.awaited.add(w.Key)
	if now, ok := c.Workload(w.Key); ok && !now.SameProgress(w) && c.awaited.forget(w.Key) {
		c.wake(w.Key)
	}
}

// seen wakes the workload of a copy that shows progress since the one before.
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

// forget ends the waiting and reports whether there was any.
func (a *awaited) forget(key kube.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, found := a.keys[key]
	delete(a.keys, key)
	return found
}
