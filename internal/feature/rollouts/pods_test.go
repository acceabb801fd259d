package rollouts

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// crowd is the pods of a workload that does not say how many it wants.
type crowd struct {
	pods    []pods.Pod
	evicted []string
}

func (c *crowd) List(context.Context, *kube.Workload) ([]pods.Pod, error) {
	return slices.Clone(c.pods), nil
}

func (c *crowd) Evict(_ context.Context, p pods.Pod) error {
	c.evicted = append(c.evicted, p.Name)
	c.pods = slices.DeleteFunc(c.pods, func(other pods.Pod) bool { return other.Name == p.Name })
	return nil
}

func (c *crowd) Touch(context.Context, pods.Pod, string) error { return nil }

// TestEvictWaitsForASuccessor: between the end of a pod and the beginning of the next
// there is one less, which is known only to who counted before.
func TestEvictWaitsForASuccessor(t *testing.T) {
	t.Parallel()
	c := &crowd{pods: []pods.Pod{{Name: "a", Created: ago(time.Hour), Ready: true}, {Name: "b", Created: ago(time.Hour), Ready: true}}}
	s := newScene()
	s.workload.Annotations[settings.Strategy] = "evict"
	loop := s.loopOn(c)
	turn := func() {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		turn()
	}
	if len(c.evicted) != 1 || s.entry.Eviction.Pods != 2 {
		t.Fatalf("evicted %v of %d before there is a successor", c.evicted, s.entry.Eviction.Pods)
	}
	c.pods = append(c.pods, pods.Pod{Name: "c", Created: now.Add(time.Second), Ready: true})
	turn()
	if len(c.evicted) != 2 {
		t.Errorf("evicted %v, and now it was the other one's turn", c.evicted)
	}
	c.pods = []pods.Pod{{Name: "c", Created: now.Add(time.Second), Ready: true}, {Name: "d", Created: now.Add(time.Second), Ready: true}}
	turn()
	if s.entry.Inputs[app].Version != v2 || s.entry.Eviction.Pods != 0 {
		t.Errorf("in the end the entry is %+v", s.entry)
	}
}

// TestRefreshReaches: what is mounted is said to be refreshed, and what a refresh does
// not reach as a whole is told.
func TestRefreshReaches(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		reach         input.Extent
		mounted, lost bool
	}{
		"Everything": {"the kubelet writes it again", input.Everything, true, false},
		"Some":       {"one way is refreshed and the other is not", input.Some, true, true},
		"Nothing":    {"a process has its environment from its start", input.Nothing, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := []input.Finding{with(due(app, 0), func(f *input.Finding) { f.Refresh = tc.reach })}
			if got := len(mounted(all)) > 0; got != tc.mounted {
				t.Errorf("%s: mounted %t", tc.reason, got)
			}
			if got := len(unrefreshable(all)) > 0; got != tc.lost {
				t.Errorf("%s: cannot be refreshed: %t", tc.reason, got)
			}
		})
	}
}
