package rollouts

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// toldOf counts the events of a reason.
func (s *scene) toldOf(reason input.Reason) int {
	n := 0
	for _, e := range s.told {
		if e.Reason == string(reason) {
			n++
		}
	}
	return n
}

// TestFollowingIsToldOnce: also when a change is due at first sight, and not again by the
// next process.
func TestFollowingIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, findings := range map[string][]input.Finding{
		"Baseline": {recorded(app, input.Baseline), recorded(db, input.Baseline)}, "Due": {due(app, time.Second), recorded(db, input.Baseline)},
	} {
		s := newScene()
		s.findings = findings
		for range 2 { // processes
			s.registry = prometheus.NewRegistry()
			loop := s.loop()
			for range 2 {
				if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := s.toldOf(input.Following); got != 1 {
			t.Errorf("%s: told %d times, want once: %+v", name, got, s.told)
		}
		if s.told[0].Note != "follows configmap/app, secret/db" {
			t.Errorf("%s: the first word is %q", name, s.told[0].Note)
		}
	}
}

// TestHeldIsRepeated: the API server drops events after an hour, and a change still
// waits.
func TestHeldIsRepeated(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations[settings.Hold] = "freeze"
	const halfHour = 30 * time.Minute
	s.clock = now.Truncate(halfHour)
	loop := s.loop()
	for step, want := range []int{1, 1, 2, 3} {
		result, err := loop.Reconcile(t.Context(), s.workload.Key)
		if err != nil || result.RequeueAfter != halfHour {
			t.Fatalf("step %d: another look in %s, error %v", step, result.RequeueAfter, err)
		}
		if got := s.toldOf(input.Held); got != want {
			t.Errorf("step %d: told %d times, want %d", step, got, want)
		}
		if step > 0 {
			s.clock = s.clock.Add(halfHour)
		}
	}
	if last := s.told[len(s.told)-1]; !last.Warning || !strings.Contains(last.Note, "freeze") {
		t.Errorf("the last word is %+v", last)
	}
}

// TestStrategyOffIsToldAtOnce: not only when a change cannot be delivered.
func TestStrategyOffIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations[settings.Strategy] = "evict"
	s.findings = []input.Finding{inStep(app)}
	loop := s.loop()
	for range 2 {
		if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.toldOf(input.StrategyOff); got != 1 {
		t.Errorf("told %d times, want once: %+v", got, s.told)
	}
}

// TestAWaitIsLoggedOnce: not again for each version of content that changes all the time, but
// again after it was in step.
func TestAWaitIsLoggedOnce(t *testing.T) {
	t.Parallel()
	s := newScene()
	var lines []string
	d := s.dependencies()
	d.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 0})
	loop := New(DefaultOptions(), d)
	waits := func(message string) Decision {
		return Decision{Verb: Wait, Reason: input.QuietWindow, Message: message, PendingSince: now}
	}
	for step, c := range []struct {
		decision Decision
		want     int
	}{
		{waits("1 -> 2"), 1},
		{waits("1 -> 3"), 1},
		{Decision{Verb: Leave, Reason: input.InStep}, 1},
		{waits("1 -> 4"), 2},
	} {
		loop.report(Gathered{Workload: s.workload}, c.decision)
		if len(lines) != c.want {
			t.Errorf("step %d: %d lines, want %d: %q", step, len(lines), c.want, lines)
		}
	}
}

// TestEveryWaitHasAnEnd: what waited is logged at info when it waits no more, whatever
// became of it.
func TestEveryWaitHasAnEnd(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]input.Finding{
		"Delivered": recorded(app, input.DeliveredByRollout), "WentBack": inStep(app),
	} {
		s := newScene()
		s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Pending: record.Pending{PendingSince: ago(time.Minute)}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
		s.findings = []input.Finding{f}
		var lines []string
		d := s.dependencies()
		d.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 0})
		if _, err := New(DefaultOptions(), d).Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], string(f.Reason)) {
			t.Errorf("%s: at info level it says %q", name, lines)
		}
	}
}

// TestWarningsAreLogged: a program that may not write events says in its log what it warns of, once,
// and only what is new. What is logged for all workloads together isn't repeated for each.
func TestWarningsAreLogged(t *testing.T) {
	t.Parallel()
	s := newScene()
	var lines []string
	d := s.dependencies()
	d.Announcer = announce.Several{}
	d.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 0})
	loop := New(DefaultOptions(), d)
	denied := input.Warning{Reason: input.Unresolved, About: input.Image("web"), Text: "answered 401"}
	unreachable := input.Warning{Reason: input.Unresolved, About: input.Image("side"), Text: "no answer", Shared: true}
	failed := input.Warning{Reason: input.RolloutFailed, About: input.Image("side"), Text: strings.Repeat("long ", 1000)}
	for step, c := range []struct {
		warnings []input.Warning
		want     string
	}{
		{[]input.Warning{denied, unreachable}, "answered 401"},
		{[]input.Warning{denied, unreachable}, ""},
		{[]input.Warning{denied, failed}, "long"},
		{nil, ""},
		{[]input.Warning{denied}, "answered 401"},
	} {
		lines = nil
		var in Observation
		in.Warnings = c.warnings
		loop.warn(s.workload, in)
		if c.want == "" && len(lines) == 0 {
			continue
		}
		if len(lines) != 1 || c.want == "" || !strings.Contains(lines[0], c.want) || !strings.Contains(lines[0], "web") || len(lines[0]) > 1500 {
			t.Errorf("step %d: %q, want one line with %q", step, lines, c.want)
		}
	}
}

// TestBoundsAreCounted: the metric names the bound that a workload is beyond, once for each.
func TestBoundsAreCounted(t *testing.T) {
	t.Parallel()
	s := newScene()
	loop := New(DefaultOptions(), s.dependencies())
	var in Observation
	in.Warnings = []input.Warning{{Reason: input.TooManyKeys, About: app, Text: "too many keys"}}
	loop.warn(s.workload, in)
	loop.warn(s.workload, in)
	loop.metrics.count(s.workload, Decision{Verb: Leave, Reason: input.TooManySources}, time.Now())
	for _, reason := range []input.Reason{input.TooManyKeys, input.TooManySources} {
		got := testutil.ToFloat64(loop.metrics.invalid.WithLabelValues(s.workload.Key.Kind, s.workload.Key.Namespace, string(reason)))
		if got != 1 {
			t.Errorf("%s is counted %v times, want once", reason, got)
		}
	}
}
