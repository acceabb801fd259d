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

// Memory is a record of what was delivered, in whatever form.
type Memory interface {
	// Status tells how well the record can be read.
	Status() mirror.Sync
}

// WorkloadMemory is a Memory that has an entry for each workload. One that has an
// entry for each source, as kubernetes-reloader has, is none.
type WorkloadMemory interface {
	// Keys lists the workloads that something is remembered of.
	Keys() []kube.Key
	// Wake sets the function that is called with a workload to look at again.
	Wake(func(kube.Key))
	// Begin notes that a scope is followed, unless that is on record. Workloads that
	// are not younger than newest were there before.
	Begin(scope Scope, newest time.Time)
}

const (
	// firstLook and laterLooks bound how often is looked for lists that have arrived.
	firstLook  = 50 * time.Millisecond
	laterLooks = time.Second
)

// Waker knows of reasons to look at a workload again: a family of inputs with a
// schedule of its own, for example.
type Waker interface {
	// Wake sets the function that is called with such a workload. It must return
	// quickly.
	Wake(func(kube.Key))
}

// Feed calls add with every workload that has to be looked at: once for each that
// exists or is on record, and then for each that something happened to; and with
// none before enough is known to decide on it, whoever wakes it. It returns when the
// context ends.
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
	// note puts a scope on record; nil where the record has no place for it.
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

// look begins what has been listed meanwhile and offers again what was held back.
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

// begin puts on record what is followed in an area since it was listed. It comes
// before the first decision there.
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
