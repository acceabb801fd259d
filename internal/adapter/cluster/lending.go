package cluster

import (
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// lending knows which workloads lend their template to others. Lockstep doesn't follow a lender
// on its own.
type lending struct {
	mu sync.RWMutex
	// borrowers by lender.
	borrowers map[kube.Key]map[kube.Key]struct{}
}

// resolve returns a workload with the template that its pods are made from, and doesn't find
// lenders. find returns workloads as stored in the API server.
func (l *lending) resolve(key kube.Key, find func(kube.Key) (*kube.Workload, bool)) (*kube.Workload, bool) {
	if l.lends(key) {
		return nil, false
	}
	w, ok := find(key)
	if !ok {
		return nil, false
	}
	return w.Resolved(find), true
}

func (l *lending) lends(key kube.Key) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.borrowers[key]) > 0
}

// borrowersOf returns the workloads that use this one's template.
func (l *lending) borrowersOf(key kube.Key) []kube.Key {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Collect(maps.Keys(l.borrowers[key]))
}

// replace removes the old copy of a workload and adds the new one. Either may be nil.
func (l *lending) replace(old, now *kube.Workload) {
	before, after := lenderOf(old), lenderOf(now)
	if before == after {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before != (kube.Key{}) {
		// Other workloads may borrow from it too.
		delete(l.borrowers[before], old.Key)
		if len(l.borrowers[before]) == 0 {
			delete(l.borrowers, before)
		}
	}
	if after == (kube.Key{}) {
		return
	}
	if l.borrowers == nil {
		l.borrowers = map[kube.Key]map[kube.Key]struct{}{}
	}
	if l.borrowers[after] == nil {
		l.borrowers[after] = map[kube.Key]struct{}{}
	}
	l.borrowers[after][now.Key] = struct{}{}
}

// lenderOf returns the workload whose template this one uses, or the zero Key.
func lenderOf(w *kube.Workload) kube.Key {
	if w == nil {
		return kube.Key{}
	}
	return w.Borrows
}
