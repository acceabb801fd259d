package ledger

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// bound is the maximum number of bytes in a shard, for the workloads of one namespace and for
// all.
type bound struct{ namespace, shard int }

// forNew limits new workloads, and those that follow more sources than before. One namespace
// leaves room for seven others. A single workload fits with its key.
func forNew() bound { return bound{record.MaxRoom + maxKey, 500 << 10} }

// forKnown limits the growth of workloads on record that don't follow more sources than before:
// delivered, shown and reverted versions take more space than a baseline. It leaves room for
// notes on deleted workloads, below the 1 MiB of a ConfigMap.
func forKnown() bound { return bound{108 << 10, 850 << 10} }

// refuse explains why there isn't enough room, empty when there is.
func (b bound) refuse(s *shard, namespace string, own, all int) string {
	switch {
	case own > b.namespace:
		return fmt.Sprintf("the workloads in namespace %s use all of the %d KiB that one namespace can have in the record %s", namespace, b.namespace>>10, s.name)
	case all > b.shard:
		return fmt.Sprintf("the record %s is full", s.name)
	}
	return ""
}

// Reserve keeps room for an entry until FreeRoom, or explains why there is none. Only the
// workloads that came last, or need more than before, are refused, unless all entries have grown
// far beyond the usual size.
func (r *Records) Reserve(key kube.Key, room int) (full string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, stored := r.shardOf(key), storageKey(key)
	wanted := lot{key.Namespace, len(stored) + room}
	own, all := s.taken.with(stored, wanted)
	why := forNew().refuse(s, key.Namespace, own, all)
	if why != "" && s.isKnown(stored, room) {
		why = forKnown().refuse(s, key.Namespace, own, all)
	}
	if why == "" {
		s.claims[stored] = wanted
		s.measure(stored)
	}
	return why
}

// FreeRoom releases the reserved room that the entry does not use.
func (r *Records) FreeRoom(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, stored := r.shardOf(key), storageKey(key)
	delete(s.claims, stored)
	s.measure(stored)
}

// isKnown reports whether a workload is on record and doesn't need more room than its entry may
// already use.
func (s *shard) isKnown(key string, room int) bool {
	e, ok, err := s.entry(key)
	return ok && err == nil && e.Room() >= room
}

// lot is the space that a key of a shard takes, and the key's namespace.
type lot struct {
	namespace string
	size      int
}

// tally is the space that the keys of a shard take, with running totals.
type tally struct {
	lots       map[string]lot
	all        int
	namespaces map[string]int
}

func newTally() tally {
	return tally{lots: map[string]lot{}, namespaces: map[string]int{}}
}

// with is the total space of the namespace and of all keys if the key had this size.
func (t tally) with(key string, l lot) (own, all int) {
	before := t.lots[key]
	own, all = t.namespaces[l.namespace]+l.size, t.all+l.size-before.size
	if before.namespace == l.namespace {
		own -= before.size
	}
	return own, all
}

// set records the size of a key, zero when it is gone.
func (t *tally) set(key string, l lot) {
	t.add(t.lots[key].namespace, -t.lots[key].size)
	t.add(l.namespace, l.size)
	t.lots[key] = l
	if l.size == 0 {
		delete(t.lots, key)
	}
}

func (t *tally) add(namespace string, size int) {
	t.all += size
	t.namespaces[namespace] += size
	if t.namespaces[namespace] == 0 {
		delete(t.namespaces, namespace)
	}
}

// measure records a key's current size: that of its newest text, or the reserved size.
func (s *shard) measure(key string) {
	l := s.claims[key]
	if text, ok := s.get(key); ok {
		o, _ := ownerOf(key, text)
		l = lot{o.namespace, max(l.size, len(key)+len(text))}
	}
	s.taken.set(key, l)
}

// measureAll recomputes the tally after the whole shard was replaced.
func (s *shard) measureAll() {
	s.taken = newTally()
	for key := range s.stored {
		s.measure(key)
	}
	for key := range s.dirty {
		s.measure(key)
	}
	for key := range s.claims {
		s.measure(key)
	}
}
