package rollouts

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// TestStalledControllerGivesUpItsPlace: a workload rolls out, and can't be checked any more. After the timeout,
// the others don't wait for it.
func TestStalledControllerGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		stall  func(t *testing.T, c *crew, before map[kube.Key]record.Entry)
	}{
		"EditedMeanwhile": {"a user edits its template, and its controller doesn't observe that", func(t *testing.T, c *crew, _ map[kube.Key]record.Entry) {
			t.Helper()
			e := c.entries[web("a")].Clone()
			given := e.Inputs[app]
			given.From = "1"
			e.Inputs[app] = given
			c.entries[web("a")] = e
			a := c.deployments[web("a")]
			a.Generation++
			a.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:invalid"}}
			c.see(t, "a")
			c.pass(t, 0)
			got, err := c.loop.gatherer.Gather(t.Context(), web("a"))
			if d := Decide(got.Observation); err != nil || d.Reason != input.GenerationNotObserved {
				t.Fatalf("its decision is %s, %v, which isn't what this test is about", d.Reason, err)
			}
		}},
		"Unrecorded": {"the patch isn't on record, and its controller hasn't observed it", func(_ *testing.T, c *crew, before map[kube.Key]record.Entry) {
			c.entries = before
			c.start()
		}},
		"Unreadable": {"its inputs can't be read", func(_ *testing.T, c *crew, _ map[kube.Key]record.Entry) {
			c.unreadable = map[string]error{"a": errors.New("not found")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBroken(t, 5, []string{"e"}, func(*crew) {})
			before := maps.Clone(c.entries)
			c.pass(t, 2*time.Second)
			c.expect(t, "the first step", 1)
			tc.stall(t, c, before)
			c.pass(t, time.Second)
			c.pass(t, 9*time.Minute)
			c.expect(t, "it may still go on", 1)
			c.pass(t, 2*time.Minute)
			c.expect(t, tc.reason+"; the one that is broken and the next healthy one begin", 3)
			if n := c.loop.spreads.rolling(); n != 2 {
				t.Errorf("%d workloads are counted as rolling, want these two", n)
			}
			c.status(t, "b", 2, 2)
			c.pass(t, 0)
			c.pass(t, c.safety.Settle)
			c.expect(t, "the second step", 5)
		})
	}
}

// TestStuckRolloutsDelayAFixOnce: the rollouts of healthy workloads get stuck, one after the other. One that is
// broken waits for the first of them only.
func TestStuckRolloutsDelayAFixOnce(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 6, []string{"f"}, func(*crew) {})
	c.pass(t, 2*time.Second)
	c.expect(t, "the first step", 1)
	c.pass(t, 10*time.Minute)
	c.expect(t, "it may still go on", 1)
	c.pass(t, time.Minute)
	if got := slices.Sorted(slices.Values(c.order)); strings.Join(got, "") != "abf" {
		t.Errorf("rolled out %q, want a, the next healthy one, and f", got)
	}
}

// TestChangesWithoutEndReachBroken: a source changes before any healthy workload has proved the version. Each
// version is awaited, but not without end.
func TestChangesWithoutEndReachBroken(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 6, []string{"f"}, func(*crew) {})
	begun := c.clock
	for i := 0; !slices.Contains(c.order, "f"); i++ {
		if c.clock.Sub(begun) > 2*time.Hour {
			t.Fatalf("%d rollouts, and none of f", len(c.order))
		}
		c.pass(t, 2*time.Second)
		c.pass(t, 48*time.Second)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			c.status(t, name, 2, 2)
		}
		c.change(t, string(rune('3'+i%7)))
	}
	if waited := c.clock.Sub(begun); waited < 50*time.Minute {
		t.Errorf("f waited for %s, and each version is awaited anew at first", waited)
	}
}
