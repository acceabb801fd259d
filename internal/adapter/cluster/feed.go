package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// Memory is a record of the delivered versions, in any form.
type Memory interface {
	// Status reports how well the record can be read.
	Status() mirror.Sync
}

// WorkloadMemory is a Memory with an entry for each workload. The record of kubernetes-reloader
// has an entry for each source, so it isn't a WorkloadMemory.
type WorkloadMemory interface {
	// Keys lists the workloads on record.
	Keys() []kube.Key
	// Wake sets the function that is called with a workload that needs another decision.
	Wake(func(kube.Key))
	// Begin records that a scope is followed, unless the record already lists it. Workloads
	// created no later than newest existed before.
	Begin(scope Scope, newest time.Time)
}

const (
	// firstLook and laterLooks are the intervals at which Feed checks for finished lists.
	firstLook  = 50 * time.Millisecond
	laterLooks = time.Second
)

// Waker has its own reasons to decide on a workload again, for example a family of inputs with
// its own schedule.
type Waker interface {
	// Wake sets the function that is called with such a workload. It must return quickly.
	Wake(func(kube.Key))
}

// Feed calls add with every workload that needs a decision: once for each that exists or is on
// record, then for each that changes. It holds a workload back until enough is known to decide
// on it. It returns when the context ends.
func Feed(ctx context.Context, c *Cache, r Memory, add func(kube.Key), others ...Waker) {
	known := func(context.Context) (bool, error) { return c.Defaults() && r.Status().Answered(), nil }
	if wait.PollUntilContextCancel(ctx, firstLook, true, known) != nil {
		return
	}
	f := &feed{cache: c, add: add, held: map[kube.Key]struct{}{}, begun: map[*area]map[Scope]struct{}{}}
	memory, byWorkload := r.(WorkloadMemory)
	if byWorkload {
		f.note = memory.Begin
		memory.Wake(f.offer)
	}
	c.Wake(f.offer)
	for _, w := range others {
		w.Wake(f.offer)
	}
	c.EachWorkload(func(w *kube.Workload) { f.offer(w.Key) })
	if byWorkload {
		for _, key := range memory.Keys() {
			f.offer(key)
		}
	}
	for pause := firstLook; ; pause = min(2*pause, laterLooks) {
		f.look()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// feed holds keys back until their workloads can be decided on.
type feed struct {
	cache *Cache
	add   func(kube.Key)
	// note records a scope; nil when the record cannot store scopes.
	note func(scope Scope, newest time.Time)

	mu    sync.Mutex
	held  map[kube.Key]struct{}
	begun map[*area]map[Scope]struct{}
}

// offer adds a key, or holds it back.
func (f *feed) offer(key kube.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cache.Settled(key) {
		f.held[key] = struct{}{}
		return
	}
	if a, ok := f.cache.areas.Of(key.Namespace); ok {
		f.begin(a)
	}
	delete(f.held, key)
	f.add(key)
}

// look records scopes that have been listed meanwhile and offers held keys again.
func (f *feed) look() {
	f.mu.Lock()
	held := slices.Collect(maps.Keys(f.held))
	areas := f.cache.areas.All()
	maps.DeleteFunc(f.begun, func(a *area, _ map[Scope]struct{}) bool { return !slices.Contains(areas, a) })
	for _, a := range areas {
		f.begin(a)
	}
	f.mu.Unlock()
	for _, key := range held {
		f.offer(key)
	}
}

// begin records which scopes of an area are followed, once they are listed and before the first
// decision in the area.
func (f *feed) begin(a *area) {
	if f.note == nil {
		return
	}
	if f.begun[a] == nil {
		f.begun[a] = map[Scope]struct{}{}
	}
	begun := f.begun[a]
	if len(begun) == len(a.sources)+len(a.workloads) {
		return
	}
	for scope := range a.listedScopes() {
		if _, known := begun[scope]; !known {
			begun[scope] = struct{}{}
			f.note(scope, a.newest())
		}
	}
}
