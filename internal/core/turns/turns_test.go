package turns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/turns"
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
			q := turns.New(1<<20, func(key string) string { namespace, _, _ := strings.Cut(key, "/"); return namespace })
			for _, key := range tc.push {
				q.Push(key)
			}
			var got []string
			for q.Len() > 0 {
				got = append(got, q.Pop())
			}
			for _, key := range got {
				q.Done(key)
			}
			if len(got) != len(tc.push) {
				t.Errorf("%s: %d keys were served, want each of the %d once", tc.reason, len(got), len(tc.push))
			}
			if diff := cmp.Diff(tc.want, got[:len(tc.want)]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !q.Empty() {
				t.Errorf("%s: the queue isn't empty", tc.reason)
			}
		})
	}
}

// TestTurnsInBetween: a namespace whose last key was served comes after those that wait.
func TestTurnsInBetween(t *testing.T) {
	t.Parallel()
	q := turns.New(1<<20, func(key string) string { return key[:1] })
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

// TestRemoved: a removed key isn't served, and its namespace doesn't take a turn for it.
func TestRemoved(t *testing.T) {
	t.Parallel()
	q := turns.New(2, func(key string) string { return key[:1] })
	for _, key := range []string{"a1", "a2", "b1", "c1", "c2", "c3"} {
		q.Push(key)
	}
	for _, key := range []string{"a1", "b1", "b2", "c3"} {
		q.Remove(key)
	}
	var got []string
	for q.Len() > 0 {
		got = append(got, q.Pop())
	}
	if diff := cmp.Diff([]string{"a2", "c1", "c2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q.Push("c4") // It waits for a worker.
	q.Remove("c4")
	for _, key := range got {
		q.Done(key)
	}
	if !q.Empty() {
		t.Error("the queue isn't empty")
	}
}
