package loop

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"big/w"}, 2000)
	tests := map[string]struct {
		reason string
		push   []string
		want   []string // the first keys that are served
	}{
		"OneNamespace":  {"the order of arrival", []string{"a/1", "a/2", "a/3"}, []string{"a/1", "a/2", "a/3"}},
		"Late":          {"2,000 waiting keys of one namespace delay another one by a single key", append(slices.Clone(many), "small/w"), []string{"big/w", "small/w", "big/w"}},
		"ThreeInTurn":   {"each namespace has one key in each round", []string{"a/1", "a/2", "a/3", "b/1", "b/2", "c/1"}, []string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}},
		"ClusterScoped": {"keys without a namespace are one tenant", []string{"/1", "/2", "a/1"}, []string{"/1", "a/1", "/2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newTurns(1<<20, func(key string) string { namespace, _, _ := strings.Cut(key, "/"); return namespace })
			for _, key := range tc.push {
				q.Push(key)
			}
			var got []string
			for q.Len() > 0 {
				got = append(got, q.Pop())
			}
			if len(got) != len(tc.push) {
				t.Errorf("%s: %d keys were served, want each of the %d once", tc.reason, len(got), len(tc.push))
			}
			if diff := cmp.Diff(tc.want, got[:len(tc.want)]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if len(q.waiting)+len(q.next) > 0 {
				t.Errorf("%s: the empty queue still holds %d namespaces", tc.reason, len(q.waiting))
			}
		})
	}
}

// TestTurnsInBetween: a namespace whose last key was served comes after those that wait.
func TestTurnsInBetween(t *testing.T) {
	t.Parallel()
	q := newTurns(1<<20, func(key string) string { return key[:1] })
	q.Push("a1")
	q.Push("b1")
	q.Push("b2")
	got := []string{q.Pop()}
	q.Push("a2")
	for q.Len() > 0 {
		got = append(got, q.Pop())
	}
	if diff := cmp.Diff([]string{"a1", "b1", "a2", "b2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTurnsLeaveWorkers: a namespace whose keys take long leaves workers to the others, and has
// its next key when one of its own is done.
func TestTurnsLeaveWorkers(t *testing.T) {
	t.Parallel()
	turns := newTurns(share(12), func(key name) string { return string(key[:1]) })
	q := newQueue("turns", workqueue.DefaultTypedControllerRateLimiter[name](), turns)
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
	if len(turns.busy)+len(turns.waiting)+len(turns.next) > 0 {
		t.Errorf("the empty queue still holds %v, %v, %v", turns.busy, turns.waiting, turns.next)
	}
}

type name string

func (n name) String() string { return string(n) }
