package ledger

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// bound is how many bytes of a shard are taken at most, by the workloads of one
// namespace and by all.
type bound struct{ namespace, shard int }

// forNew is what workloads can take that come, or that follow more than before. One
// namespace leaves room for seven others.
func forNew() bound { return bound{64 << 10, 500 << 10} }

// forKnown is what workloads on record can grow to, when they follow no more than
// before: what was given, shown and reverted is longer than a baseline. It leaves
// room for the notes on workloads that are gone, below the 1 MiB of a ConfigMap.
func forKnown() bound { return bound{108 << 10, 850 << 10} }

// refuse says why there is no room beside what others take, empty when there is.
func (b bound) refuse(s *shard, namespace string, own, all int) string {
	switch {
	case own > b.namespace:
		return fmt.Sprintf("the workloads of namespace %s take all of the %d KiB that one namespace can have of the record %s", namespace, b.namespace>>10, s.name)
	case all > b.shard:
		return fmt.Sprintf("the record %s has no room left", s.name)
	}
	return ""
}

// Reserve keeps room for an entry until Release, and says why when there is none. Only those
// that came last, or ask for more, find none, unless the entries of all have grown far
// beyond what is usual.
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

// FreeRoom gives back what Reserve kept and the entry does not take.
func (r *Records) FreeRoom(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, stored := r.shardOf(key), storageKey(key)
	delete(s.claims, stored)
	s.measure(stored)
}

// isKnown reports whether a workload is on record and asks for no more room than its
// entry may need already.
func (s *shard) isKnown(key string, room int) bool {
	e, ok, err := s.entry(key)
	return ok && err == nil && e.Room() >= room
}

// lot is what a key of a shard takes, and whose it is.
type lot struct {
	namespace string
	size      int
}

// tally is what the keys of a shard take, with running totals.
type tally struct {
	lots       map[string]lot
	all        int
	namespaces map[string]int
}

func newTally() tally {
	return tally{lots: map[string]lot{}, namespaces: map[string]int{}}
}

// with is what the namespace and all would take if the key took this.
func (t tally) with(key string, l lot) (own, all int) {
	before := t.lots[key]
	own, all = t.namespaces[l.namespace]+l.size, t.all+l.size-before.size
	if before.namespace == l.namespace {
		own -= before.size
	}
	return own, all
}

// set notes what a key takes, zero when it is gone.
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

// measure notes what a key takes now: its newest text, or more while room is kept.
func (s *shard) measure(key string) {
	l := s.claims[key]
	if text, ok := s.get(key); ok {
		o, _ := ownerOf(key, text)
		l = lot{o.namespace, max(l.size, len(key)+len(text))}
	}
	s.taken.set(key, l)
}

// measureAll begins anew, after the whole shard was replaced.
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
