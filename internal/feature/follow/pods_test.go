package follow

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/rollout"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func TestNextEviction(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old := func(name string, ready bool) rollout.Pod {
		return rollout.Pod{Name: name, Created: since.Add(-time.Hour), Ready: ready}
	}
	young := func(name string, ready bool) rollout.Pod {
		return rollout.Pod{Name: name, Created: since.Add(time.Second), Ready: ready}
	}
	ending := func(p rollout.Pod) rollout.Pod {
		p.Terminating = true
		return p
	}
	for name, tc := range map[string]struct {
		reason   string
		pods     []rollout.Pod
		replicas int
		victim   string
		done     bool
	}{
		"First":        {"all work: one goes", []rollout.Pod{old("a", true), old("b", true)}, 2, "a", false},
		"Next":         {"its successor works: the next one goes", []rollout.Pod{young("c", true), old("b", true)}, 2, "b", false},
		"NotReady":     {"its successor does not work yet", []rollout.Pod{young("c", false), old("b", true)}, 2, "", false},
		"StillEnding":  {"the last one has not gone yet", []rollout.Pod{ending(old("a", true)), old("b", true)}, 2, "", false},
		"TooFew":       {"its successor does not exist yet", []rollout.Pod{old("b", true)}, 2, "", false},
		"BrokenFirst":  {"one that does not work anyway goes first", []rollout.Pod{old("a", true), old("b", false)}, 2, "b", false},
		"AllBroken":    {"nothing works: waiting would help nobody", []rollout.Pod{old("a", false)}, 2, "a", false},
		"Done":         {"everyone is younger", []rollout.Pod{young("c", true), young("d", true)}, 2, "", true},
		"DoneUnready":  {"younger is enough; health is the workload's own affair", []rollout.Pod{young("c", false)}, 1, "", true},
		"LastOneEnds":  {"an old pod that is ending still runs the old version", []rollout.Pod{ending(old("a", true)), young("c", true)}, 1, "", false},
		"SameSecond":   {"in doubt a pod is old", []rollout.Pod{{Name: "a", Created: since, Ready: true}}, 1, "a", false},
		"NoPods":       {"nobody runs an old version", nil, 2, "", true},
		"UnknownCount": {"nobody knows how many there should be", []rollout.Pod{old("a", true)}, 0, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim, done := nextEviction(tc.pods, tc.replicas, since)
			got := ""
			if victim != nil {
				got = victim.Name
			}
			if got != tc.victim || done != tc.done {
				t.Errorf("%s: victim %q done %t, want %q %t", tc.reason, got, done, tc.victim, tc.done)
			}
		})
	}
}

// crowd is the pods of a workload that does not say how many it wants.
type crowd struct {
	pods    []rollout.Pod
	evicted []string
}

func (c *crowd) List(context.Context, *kube.Workload) ([]rollout.Pod, error) {
	return slices.Clone(c.pods), nil
}

func (c *crowd) Evict(_ context.Context, p rollout.Pod) error {
	c.evicted = append(c.evicted, p.Name)
	c.pods = slices.DeleteFunc(c.pods, func(other rollout.Pod) bool { return other.Name == p.Name })
	return nil
}

func (c *crowd) Touch(context.Context, rollout.Pod, string) error { return nil }

// TestEvictWaitsForASuccessor: between the end of a pod and the beginning of the next
// there is one less, which is known only to who counted before.
func TestEvictWaitsForASuccessor(t *testing.T) {
	t.Parallel()
	c := &crowd{pods: []rollout.Pod{{Name: "a", Created: ago(time.Hour), Ready: true}, {Name: "b", Created: ago(time.Hour), Ready: true}}}
	s := newScene()
	s.workload.Annotations[settings.Strategy] = "evict"
	loop := s.loop()
	loop.Pods = c
	turn := func() {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		turn()
	}
	if len(c.evicted) != 1 || s.entry.EvictPods != 2 {
		t.Fatalf("evicted %v of %d before there is a successor", c.evicted, s.entry.EvictPods)
	}
	c.pods = append(c.pods, rollout.Pod{Name: "c", Created: now.Add(time.Second), Ready: true})
	turn()
	if len(c.evicted) != 2 {
		t.Errorf("evicted %v, and now it was the other one's turn", c.evicted)
	}
	c.pods = []rollout.Pod{{Name: "c", Created: now.Add(time.Second), Ready: true}, {Name: "d", Created: now.Add(time.Second), Ready: true}}
	turn()
	if s.entry.Inputs[app].Version != v2 || s.entry.EvictPods != 0 {
		t.Errorf("in the end the entry is %+v", s.entry)
	}
}

// TestUnrefreshable: only what the kubelet mounts, and mounts as a whole, can be
// refreshed.
func TestUnrefreshable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*input.Finding)
		lost   bool
	}{
		"Mounted":   {"the kubelet writes it again", func(f *input.Finding) { f.Volume = true }, false},
		"Env":       {"a process has its environment from its start", func(f *input.Finding) { f.Env = true }, true},
		"Both":      {"one way is refreshed and the other is not", func(f *input.Finding) { f.Volume, f.Env = true, true }, true},
		"SubPath":   {"the kubelet mounts it once", func(f *input.Finding) { f.Volume, f.SubPath = true, true }, true},
		"OnlyNamed": {"an annotation names it, and no volume has it", func(f *input.Finding) { f.Listed = true }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := unrefreshable([]input.Finding{with(due(app, 0), tc.change)}); (len(got) > 0) != tc.lost {
				t.Errorf("%s: cannot be refreshed: %v, want %t", tc.reason, got, tc.lost)
			}
		})
	}
}

// TestMounted: a refresh reaches volumes, also of a source that is read in other ways
// as well.
func TestMounted(t *testing.T) {
	t.Parallel()
	both := with(due(app, 0), func(f *input.Finding) { f.Volume, f.Env = true, true })
	if diff := cmp.Diff([]input.Finding{both}, mounted([]input.Finding{both, due(db, 0)})); diff != "" {
		t.Errorf("mounted (-want +got)\n%s", diff)
	}
}
