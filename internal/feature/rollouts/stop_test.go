package rollouts

import (
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// TestStop: a version that fails on a healthy workload reaches no other one, is shown, and ends
// with another version. A restart doesn't change that, whatever was on record by then.
func TestStop(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(*crew){
		"Running":   func(*crew) {},
		"Restarted": (*crew).start,
		"StopLost": func(c *crew) {
			clear(c.failures)
			c.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 6, careful())
			c.pass(t, time.Minute)
			c.expect(t, "the first step", 1)
			c.fail(t, c.order[0])
			restart(c)
			c.pass(t, time.Hour)
			c.expect(t, "stopped", 1)
			for key := range c.deployments {
				if reason := c.reason(key.Name); key.Name != c.order[0] && reason != input.VersionStopped {
					t.Errorf("%s is held for %q", key.Name, reason)
				}
			}
			about := func(kind string, reason input.Reason) bool {
				return slices.ContainsFunc(c.told, func(e announce.Event) bool {
					return e.About.Kind == kind && e.Warning && e.Reason == string(reason)
				})
			}
			if !about("ConfigMap", input.VersionStopped) || !about("Deployment", input.VersionStopped) {
				t.Errorf("the stop isn't shown: %+v", c.told)
			}
			if reason := c.reason(c.order[0]); reason != input.RolloutFailed || !about("Deployment", input.RolloutFailed) {
				t.Errorf("the failed one is shown as %q: %+v", reason, c.told)
			}
			if got := c.metric(t, "lockstep_version_stops"); got != 1 {
				t.Errorf("%v versions are counted as stopped", got)
			}
			c.change(t, "3")
			c.pass(t, time.Minute)
			c.expect(t, "another version", 2)
			if c.order[1] == c.order[0] {
				t.Error("the broken one is the first")
			}
			if got := c.metric(t, "lockstep_version_stops"); got != 0 {
				t.Errorf("%v versions are counted as stopped after another version", got)
			}
		})
	}
}

// TestResumed: a user lets a stopped version go on.
func TestResumed(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 6, careful())
	c.pass(t, time.Minute)
	c.fail(t, c.order[0])
	c.resumed = []string{c.current().Short()}
	c.pass(t, time.Minute)
	c.expect(t, "resumed", 2)
	if got := c.metric(t, "lockstep_version_stops"); got != 0 {
		t.Errorf("%v versions are counted as stopped after one was resumed", got)
	}
}

// TestBrokenBefore: a workload that was broken before stops nobody.
func TestBrokenBefore(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, careful())
	c.status(t, "a", 2, 0)
	c.pass(t, time.Minute)
	c.expect(t, "two users", 2)
	c.fail(t, "a")
	if len(c.failures) != 0 {
		t.Errorf("a version is stopped: %+v", c.failures)
	}
}

// TestTwoTags: workloads follow two tags of a repository, and the digests of both fail. Neither failure lifts the stop
// of the other, and the workload that failed may follow the other tag from then on.
func TestTwoTags(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 8, careful())
	clear(c.entries)
	c.tags = map[string]string{}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	tag := func(stable, canary string) {
		for i, name := range names {
			c.tags[name] = stable
			if i >= 4 {
				c.tags[name] = canary
			}
		}
	}
	tag("1", "5")
	c.pass(t, 0)
	tag("2", "6")
	c.changed = c.clock
	c.pass(t, time.Minute)
	c.expect(t, "the first step of both", 2)
	stable, canary := c.order[0], c.order[1]
	c.fail(t, stable)
	c.fail(t, canary)
	c.pass(t, time.Minute)
	c.expect(t, "both are stopped", 2)
	c.tags[stable] = "5" // its user lets it follow the other tag, which was restored
	c.pass(t, time.Minute)
	c.tags[stable] = "1"
	for _, name := range c.order[2:] {
		c.status(t, name, 2, 2)
	}
	c.pass(t, time.Hour)
	for _, name := range c.order[2:] {
		if name != stable {
			t.Errorf("%s got a version that failed: %v", name, c.order)
		}
	}
	for _, name := range names {
		if reason := c.reason(name); name != stable && name != canary && reason != input.VersionStopped {
			t.Errorf("%s is held for %q", name, reason)
		}
	}
}

// TestFailedBeforeTheCrash: the process ends between the patch of the next version and its record.
// The workload had failed with the version before, so its failure stops nobody.
func TestFailedBeforeTheCrash(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, careful())
	c.pass(t, time.Minute)
	c.expect(t, "two users", 2)
	c.fail(t, "a")
	if len(c.failures) != 1 {
		t.Fatalf("the first version isn't stopped: %+v", c.failures)
	}
	c.change(t, "3")
	before := maps.Clone(c.entries)
	c.pass(t, time.Minute)
	c.expect(t, "the next version", 4)
	c.entries = before
	c.start()
	c.fail(t, "a")
	c.pass(t, time.Minute)
	for of, known := range c.failures {
		if of.Version == c.current().Short() && known.HasFailed(web("a").ID()) {
			t.Errorf("%s is stopped by a workload that was broken before: %+v", of, known)
		}
	}
}

// TestFailedUnrecorded: the process ends before anything of a change is on record, and the rollout fails
// meanwhile. Whoever asks first in the next process counts that failure.
func TestFailedUnrecorded(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 6, careful())
	before := maps.Clone(c.entries)
	for key, e := range before {
		e = e.Clone()
		given := e.Inputs[app]
		given.Due = ""
		e.Inputs[app], e.PendingSince, e.Turn = given, time.Time{}, spread.Turn{}
		before[key] = e
	}
	c.pass(t, time.Minute)
	c.expect(t, "the first step", 1)
	first := c.order[0]
	c.entries = before
	c.status(t, first, 1, 2, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"})
	c.start()
	clear(c.woken)
	for key := range c.workloads {
		if key.Name != first {
			_, _ = c.loop.Reconcile(t.Context(), key)
		}
	}
	c.clock = c.clock.Add(time.Minute)
	for key := range c.workloads {
		if key.Name != first {
			_, _ = c.loop.Reconcile(t.Context(), key)
		}
	}
	c.expect(t, "it failed", 1)
}

// TestMistakeWhileRolling: an annotation that isn't understood doesn't free the place of a rollout.
func TestMistakeWhileRolling(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 6, careful())
	c.pass(t, time.Minute)
	c.expect(t, "the first step", 1)
	d := c.deployments[web(c.order[0])]
	d.Annotations[settings.Quiet] = "soon"
	c.status(t, d.Name, 1, 2)
	c.pass(t, time.Minute)
	if reason := c.reason(d.Name); reason != input.InvalidAnnotation {
		t.Fatalf("it is on record as %q", reason)
	}
	c.expect(t, "it still rolls", 1)
	c.status(t, d.Name, 2, 2)
	c.pass(t, 0)
	c.pass(t, time.Minute)
	if len(c.order) == 1 {
		t.Error("its place isn't freed at the end")
	}
}
