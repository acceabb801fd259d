package loop

import (
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/core/turns"
)

// TestTurnsLeaveWorkers: a namespace whose keys take long leaves workers to the others, and has
// its next key when one of its own is done.
func TestTurnsLeaveWorkers(t *testing.T) {
	t.Parallel()
	order := turns.New(share(12), func(key name) string { return string(key[:1]) })
	q := newQueue("turns", workqueue.DefaultTypedControllerRateLimiter[name](), order)
	defer q.ShutDown()
	for _, key := range []name{"a1", "a2", "a3", "a4", "a5"} {
		q.Add(key)
	}
	get := func(want ...name) {
		t.Helper()
		for _, key := range want {
			if q.Len() == 0 {
				t.Fatalf("nothing is served, want %s", key)
			}
			if got, _ := q.Get(); got != key {
				t.Errorf("%s is served, want %s", got, key)
			}
		}
	}
	get("a1", "a2", "a3")
	if q.Len() != 0 {
		t.Error("a slow namespace can have all workers")
	}
	q.Add("b1")
	get("b1")
	q.Done("a2")
	get("a4")
	q.Add("a1") // while it is worked on
	q.Done("a1")
	get("a5")
	for _, key := range []name{"a3", "a4", "a5", "b1"} {
		q.Done(key)
	}
	get("a1")
	q.Done("a1")
	if !order.Empty() {
		t.Error("the queue isn't empty")
	}
}

type name string

func (n name) Log() string { return string(n) }
