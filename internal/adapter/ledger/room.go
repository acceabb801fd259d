package ledger

import (
	"fmt"
	"maps"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

const (
	// namespaceRoom is what the workloads of one namespace may take of a shard, so that
	// one tenant leaves room for the others.
	namespaceRoom = 64 << 10
	// shardRoom is what all of them may take. Evictions can make 1.7 times as much of it
	// for a while, and the API server refuses a ConfigMap of 1 MiB as a whole.
	shardRoom = 500 << 10
)

// lot is what a key of a shard takes, and whose it is.
type lot struct {
	text      string
	namespace string
	room      int
}

// lotOf measures what is stored under a key.
func lotOf(key, text string) lot {
	l := lot{text: text, room: len(key) + len(text)}
	if o, known := ownerOf(key, text); known {
		l.namespace = o.namespace
	}
	if e, err := record.Decode(text); err == nil {
		l.room = max(l.room, len(key)+e.Room())
	}
	return l
}

// Full says why there is no room for an entry, empty when there is. The room is then
// kept for it until it is put or the workload is forgotten. A workload that is on record
// keeps the room that it has, so that only those that came last, or ask for more, find
// none.
func (r *Records) Full(key kube.Key, room int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, stored := r.shardOf(key), storageKey(key)
	room += len(stored)
	if text, ok := s.get(stored); ok && s.lot(stored, text).room >= room {
		return ""
	}
	all, own := s.taken(stored, key.Namespace)
	switch {
	case own+room > namespaceRoom:
		return fmt.Sprintf("the workloads of namespace %s take all of the %d KiB that one namespace can have of the record %s", key.Namespace, namespaceRoom>>10, s.name)
	case all+room > shardRoom:
		return fmt.Sprintf("the record %s has no room left", s.name)
	}
	s.claims[stored] = lot{namespace: key.Namespace, room: room}
	return ""
}

// lot measures a text, once.
func (s *shard) lot(key, text string) lot {
	known, ok := s.lots[key]
	if !ok || known.text != text {
		known = lotOf(key, text)
		s.lots[key] = known
	}
	return known
}

// taken is how much is taken of the shard by all others than the key, and by those of
// one namespace.
func (s *shard) taken(but, namespace string) (all, own int) {
	lots := map[string]lot{}
	for key := range s.stored {
		if text, ok := s.get(key); ok {
			lots[key] = s.lot(key, text)
		}
	}
	for key, text := range s.dirty {
		if text != nil {
			lots[key] = s.lot(key, *text)
		}
	}
	s.lots = lots // without those of keys that are gone
	rooms := maps.Clone(lots)
	for key, claim := range s.claims {
		claim.room = max(claim.room, rooms[key].room)
		rooms[key] = claim
	}
	for key, l := range rooms {
		if key == but {
			continue
		}
		all += l.room
		if l.namespace == namespace {
			own += l.room
		}
	}
	return all, own
}
