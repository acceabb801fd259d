package rollouts

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// TestBegins: every gate answers when a workload can begin.
func TestBegins(t *testing.T) {
	t.Parallel()
	opens := func(in time.Duration) Gates { return Gates{Window: WindowState{Opens: now.Add(in)}} }
	tired := Gates{Damped: DampedState{Until: now.Add(3 * time.Minute)}}
	for name, tc := range map[string]struct {
		reason string
		change func(*Observation)
		want   time.Time
	}{
		"Now":          {"nothing is in its way", func(*Observation) {}, now},
		"Quiet":        {"its quiet window ends", func(in *Observation) { in.Intent.Quiet = 24 * time.Hour }, now.Add(23 * time.Hour)},
		"Window":       {"its window opens", func(in *Observation) { in.Gates = opens(2 * time.Hour) }, now.Add(2 * time.Hour)},
		"QuietWindow":  {"the last of its gates counts", func(in *Observation) { in.Intent.Quiet, in.Gates = 24*time.Hour, opens(time.Hour) }, now.Add(23 * time.Hour)},
		"WindowQuiet":  {"the last of its gates counts", func(in *Observation) { in.Intent.Quiet, in.Gates = 2*time.Hour, opens(5*time.Hour) }, now.Add(5 * time.Hour)},
		"Damped":       {"its pause ends", func(in *Observation) { in.Gates = tired }, now.Add(3 * time.Minute)},
		"After":        {"another workload goes first, and has its own gates", func(in *Observation) { in.Gates.After = "deployment/db" }, time.Time{}},
		"Held":         {"a user has to act", func(in *Observation) { in.Intent.Held = true }, time.Time{}},
		"HeldAndQuiet": {"a user has to act, whichever check comes first", func(in *Observation) { in.Intent.Held, in.Intent.Quiet = true, 24*time.Hour }, time.Time{}},
		"Paused":       {"a user has to act", func(in *Observation) { in.State.Rollout = health.Status{Paused: true} }, time.Time{}},
		"Stopped":      {"an operator has to act", func(in *Observation) { in.Gates.Stopped = true }, time.Time{}},
		"Barred":       {"its version is stopped", func(in *Observation) { in.Findings[0] = barred(in.Findings[0], input.VersionStopped, "failed") }, time.Time{}},
		"Waits":        {"its turn isn't its own gate", func(in *Observation) { in.Turn.Refused = true }, now},
	} {
		in := Observation{Now: now, Assessment: input.Assessment{Findings: []input.Finding{due(app, time.Hour)}}}
		in.Entry.PendingSince, in.Entry.DelaySince = ago(time.Hour), ago(time.Hour)
		tc.change(&in)
		if got := in.begins(); !got.Equal(tc.want) {
			t.Errorf("%s (%s): %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// annotate sets an annotation of a workload.
func (c *crew) annotate(t *testing.T, name, key, value string) {
	t.Helper()
	d := c.deployments[web(name)]
	d.Annotations = maps.Clone(d.Annotations)
	d.Annotations[key] = value
	if value == "" {
		delete(d.Annotations, key)
	}
	c.see(t, name)
}

// newBroken makes healthy workloads and others whose pods aren't available, before the ConfigMap changes. The
// function prepares them.
func newBroken(t *testing.T, size int, broken []string, prepare func(*crew)) *crew {
	t.Helper()
	c := newCrew(t, size, careful())
	c.version = "1" // nothing has changed yet
	c.pass(t, time.Minute)
	for _, name := range broken {
		c.status(t, name, 2, 0)
	}
	prepare(c)
	c.pass(t, time.Minute)
	c.change(t, "2")
	return c
}

// TestFixReachesBroken: a corrected ConfigMap reaches what is broken, whatever is in the way of the healthy
// workload.
func TestFixReachesBroken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, *crew)
	}{
		"Quiet": {"its quiet window ends tomorrow", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "a", settings.Quiet, "24h")
		}},
		"First": {"a user wants it to be the first, and its quiet window ends tomorrow", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "a", settings.Quiet, "24h")
			c.annotate(t, "a", settings.First, "true")
		}},
		"Window": {"its window is closed", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "a", settings.Window, "0 0 29 2 * 1h")
		}},
		"Hold": {"it is held", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "a", settings.Hold, "freeze")
		}},
	} {
		for restart, restarts := range map[string]bool{"": false, "Restarted": true} {
			t.Run(name+restart, func(t *testing.T) {
				t.Parallel()
				c := newBroken(t, 4, []string{"b", "c", "d"}, func(c *crew) { tc.prepare(t, c) })
				for range 3 {
					if restarts {
						c.start()
					}
					c.pass(t, 10*time.Second)
				}
				if got := slices.Sorted(slices.Values(c.order)); strings.Join(got, "") != "bcd" {
					t.Fatalf("%s: the change reached %q, want b, c and d", tc.reason, got)
				}
				if a := c.reason("a"); a == "" || a == input.InStep {
					t.Errorf("the healthy one is on record as %q", a)
				}
			})
		}
	}
}

// TestSoonIsAwaited: workloads that are broken wait for a healthy one that begins within the maximum delay, and
// for its proof.
func TestSoonIsAwaited(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 4, []string{"b", "c", "d"}, func(c *crew) { c.annotate(t, "a", settings.Quiet, "45s") })
	c.pass(t, 30*time.Second)
	c.expect(t, "the healthy one begins soon", 0)
	c.pass(t, 20*time.Second)
	c.expect(t, "the healthy one goes first", 1)
	c.pass(t, 5*time.Minute)
	c.expect(t, "it isn't proven", 1)
	c.fail(t, "a")
	c.pass(t, time.Hour)
	c.expect(t, "the version is stopped", 1)
}

// TestEachVersionIsAwaited: workloads that are broken have waited for the proof of a version for long. They wait
// anew for that of the next version, which a healthy one can begin at once.
func TestEachVersionIsAwaited(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"Running": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBroken(t, 5, []string{"b", "c", "d"}, func(*crew) {})
			c.pass(t, 2*time.Second)
			c.status(t, "a", 1, 2)
			c.pass(t, 2*time.Minute)
			c.expect(t, "a rolls out version 2", 1)
			if restarts {
				c.start()
			}
			c.change(t, "3")
			c.pass(t, 30*time.Second)
			if got := strings.Join(c.order, ""); got != "ae" {
				t.Fatalf("rolled out %q, want a with version 2, and e with version 3", got)
			}
			c.status(t, "e", 1, 1) // it isn't healthy before its rollout ends
			c.pass(t, 5*time.Minute)
			c.expect(t, "they wait for the proof of version 3", 2)
		})
	}
}

// TestBrokenProvesNothing: workloads that were broken recover with a version. It still reaches one healthy
// workload first.
func TestBrokenProvesNothing(t *testing.T) {
	t.Parallel()
	broken := []string{"f", "g", "h"}
	c := newBroken(t, 8, broken, func(c *crew) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			c.annotate(t, name, settings.Quiet, "10m")
		}
	})
	c.pass(t, time.Minute)
	c.expect(t, "those that are broken", 3)
	for _, name := range broken {
		c.status(t, name, 2, 2)
	}
	c.pass(t, time.Minute)
	c.pass(t, 10*time.Minute)
	c.expect(t, "one healthy workload", 4)
	c.start()
	c.pass(t, time.Minute)
	c.expect(t, "one healthy workload, after a restart", 4)
	c.fail(t, c.order[3])
	c.pass(t, time.Hour)
	c.expect(t, "the version is stopped", 4)
}

// TestRecoveredJustNow: a workload that became available a moment ago isn't healthy yet, however long a change
// has been pending.
func TestRecoveredJustNow(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 4, []string{"a"}, func(c *crew) {
		for _, name := range []string{"b", "c", "d"} {
			c.annotate(t, name, settings.Hold, "freeze")
		}
		c.annotate(t, "a", settings.Quiet, "30s")
	})
	c.pass(t, 29*time.Second)
	c.status(t, "a", 2, 2)
	c.pass(t, 0) // it is seen
	c.pass(t, 2*time.Second)
	c.expect(t, "it has been available for two seconds", 0)
	c.pass(t, 10*time.Second)
	c.expect(t, "it has been available for the settle time", 1)
	if !c.entries[web("a")].Turn.Healthy {
		t.Error("it isn't on record as healthy before its rollout")
	}
}

// TestRecoveredIsNotHealthy: a workload that failed with a version, and recovered a moment ago, isn't the first
// with the next one.
func TestRecoveredIsNotHealthy(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 5, careful())
	c.pass(t, time.Minute)
	c.fail(t, "a")
	c.expect(t, "the version is stopped", 1)
	c.pass(t, time.Minute)
	c.status(t, "a", 2, 2)
	c.change(t, "3")
	c.pass(t, 3*time.Second)
	if strings.Join(c.order, "") != "ab" {
		t.Errorf("rolled out %q, want a with version 2, and b with version 3", c.order)
	}
}

// TestCanary: healthy workloads wait for the one that a user wants to be the first, and report that on
// themselves and on the source. One that is broken doesn't wait.
func TestCanary(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 6, []string{"f"}, func(c *crew) {
		c.annotate(t, "e", settings.First, "true")
		c.annotate(t, "e", settings.Quiet, "24h")
	})
	for range 5 {
		c.pass(t, 2*time.Minute)
		c.start()
	}
	c.pass(t, time.Minute)
	if strings.Join(c.order, "") != "f" {
		t.Fatalf("the change reached %q, want f", c.order)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		told := c.entries[web(name)].Decision
		if told.Reason != input.AwaitsFirst || !strings.Contains(told.Message, "deployment/e in namespace shop goes first, and waits (QuietWindow)") {
			t.Errorf("%s is on record with %s: %s", name, told.Reason, told.Message)
		}
		if since := c.clock.Sub(told.Since); since < 9*time.Minute {
			t.Errorf("%s is on record as waiting for %s, and it has waited for longer", name, since)
		}
	}
	c.told = nil
	c.start()
	c.pass(t, 0)
	c.pass(t, time.Minute)
	about := map[string]int{}
	for _, e := range c.told {
		if e.Reason == string(input.AwaitsFirst) {
			about[e.About.Kind+"/"+e.About.Name]++
		}
	}
	for _, object := range []string{"ConfigMap/app", "Deployment/a", "Deployment/b", "Deployment/c", "Deployment/d"} {
		if about[object] != 1 {
			t.Errorf("%d events about %s, want one: %v", about[object], object, about)
		}
	}
	c.annotate(t, "e", settings.Quiet, "")
	c.pass(t, 0)
	c.pass(t, 0)
	if strings.Join(c.order, "") != "fe" || c.reason("a") != input.AwaitsTurn {
		t.Errorf("the change reached %q, want f and e; a waits for %s", c.order, c.reason("a"))
	}
}

// TestCanaryIsPassed: healthy workloads don't wait for one that waits for a user, or for them, or isn't healthy.
func TestCanaryIsPassed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		prepare func(*testing.T, *crew)
	}{
		"Held": {"a user has to act", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "e", settings.Hold, "freeze")
		}},
		"Sick": {"it isn't healthy", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "e", settings.Quiet, "24h")
			c.status(t, "e", 2, 1)
		}},
		"After": {"it waits for one of them", func(t *testing.T, c *crew) {
			t.Helper()
			c.annotate(t, "e", settings.After, "deployment/a")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBroken(t, 5, nil, func(c *crew) {
				c.loop.gatherer.Kinds = kube.Kinds()
				c.annotate(t, "e", settings.First, "true")
				tc.prepare(t, c)
			})
			c.pass(t, 10*time.Second)
			c.expect(t, tc.reason, 1)
		})
	}
}

// TestHoldBehindQuietWindow: the chosen workload is held while its quiet window is on record. A process that
// starts then lets the others go first.
func TestHoldBehindQuietWindow(t *testing.T) {
	t.Parallel()
	c := newBroken(t, 5, nil, func(c *crew) {
		c.annotate(t, "a", settings.First, "true")
		c.annotate(t, "a", settings.Quiet, "24h")
	})
	c.pass(t, time.Hour)
	c.expect(t, "they wait for the first", 0)
	c.annotate(t, "a", settings.Hold, "freeze")
	c.start()
	c.pass(t, 0)
	if a := c.reason("a"); a != input.QuietWindow {
		t.Fatalf("the first is on record with %s, which isn't what this test is about", a)
	}
	c.expect(t, "a user has to act before the first begins", 1)
}

// TestReadySince: a workload that has waited for others with this version goes on waiting, whatever was in its own
// way meanwhile.
func TestReadySince(t *testing.T) {
	t.Parallel()
	f := due(app, time.Hour)
	for name, tc := range map[string]struct {
		reason  string
		given   record.Delivered
		decided input.Reason
		pending time.Time // since when it could have been rolled out with some version
		want    time.Time
	}{
		"Never":   {"it can begin since now", record.Delivered{Due: f.Current.Short()}, input.AwaitsWindow, time.Time{}, now},
		"Waits":   {"it is on record", record.Delivered{Due: f.Current.Short(), Waits: ago(time.Minute)}, input.AwaitsTurn, time.Time{}, ago(time.Minute)},
		"Window":  {"its window closed and opened again", record.Delivered{Due: f.Current.Short(), Waits: ago(time.Hour)}, input.AwaitsWindow, time.Time{}, ago(time.Hour)},
		"Another": {"that was with another version", record.Delivered{Due: "another", Waits: ago(time.Hour)}, input.AwaitsTurn, time.Time{}, now},
		"Future":  {"a clock was wrong", record.Delivered{Due: f.Current.Short(), Waits: now.Add(time.Hour)}, input.AwaitsTurn, time.Time{}, now},
		"Recent":  {"each version is awaited anew", record.Delivered{Due: "another", Waits: ago(time.Second)}, input.AwaitsTurn, ago(75 * time.Minute), now},
		"Endless": {"it has waited for many versions, since its quiet window ended", record.Delivered{Due: "another", Waits: ago(time.Second)}, input.AwaitsTurn, ago(76 * time.Minute), ago(56 * time.Minute)},
	} {
		in := Observation{Now: now, MaxDelay: time.Minute, Intent: settings.Intent{Quiet: 20 * time.Minute}, Entry: record.Entry{Inputs: map[input.ID]record.Delivered{app: tc.given}, Decision: record.NewDecision(tc.decided, "", ago(time.Second), time.Time{})}}
		in.Entry.DelaySince = tc.pending
		if got := in.readySince(f, 0, spread.Limits{Wait: time.Minute, Proof: 10*time.Minute + 5*time.Second}); !got.Equal(tc.want) {
			t.Errorf("%s (%s): since %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}
