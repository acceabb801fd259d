package revisions

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// reports remembers the last report about each object, so users are notified once, and which
// objects no revision uses.
type reports struct {
	mu   sync.Mutex
	last map[ownership.ObjectKey]report
	lost int
}

type report struct {
	reason input.Reason
	text   string
}

func newReports() *reports {
	return &reports{last: map[ownership.ObjectKey]report{}}
}

// isNew reports whether this differs from the last report, and remembers it.
func (t *reports) isNew(key ownership.ObjectKey, reason input.Reason, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := report{reason, text}
	before := t.last[key]
	if before == now {
		return false
	}
	t.last[key] = now
	t.lost += lostOnes(now) - lostOnes(before)
	return true
}

// unreferenced is how many objects no revision uses.
func (t *reports) unreferenced() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// forget drops an object that is gone, and returns how many others no revision uses.
func (t *reports) forget(key ownership.ObjectKey) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost -= lostOnes(t.last[key])
	delete(t.last, key)
	return t.lost
}

func lostOnes(s report) int {
	if s.reason == input.Unreferenced {
		return 1
	}
	return 0
}
