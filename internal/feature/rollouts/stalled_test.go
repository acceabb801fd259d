package rollouts

import (
	"errors"
	"maps"
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
			c.expect(t, tc.reason+"; the next healthy one has its place", 2)
			if n := c.loop.spreads.rolling(); n != 1 {
				t.Errorf("%d workloads are counted as rolling, want one", n)
			}
			c.status(t, "b", 2, 2)
			c.pass(t, 0)
			c.pass(t, c.safety.Settle)
			c.expect(t, "the second step, and the one that is broken", 5)
		})
	}
}
