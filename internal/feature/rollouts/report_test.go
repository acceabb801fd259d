package rollouts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

func web(name string) kube.Key {
	return kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: name}
}

func TestEventsFor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		decision Decision
		warning  bool
		says     string // empty when there must be no event
	}{
		"Reloaded":       {"a rollout is told", Decision{Verb: RollOut, Reason: input.Reloaded, Message: "m"}, false, "rolled out m"},
		"WouldReload":    {"so is one that would have been", Decision{Verb: Observe, Reason: input.WouldReload, Message: "m"}, false, "observe mode: would roll out m"},
		"Invalid":        {"somebody has to act", Decision{Verb: Leave, Reason: input.InvalidAnnotation, Message: "m"}, true, "leaves the workload alone until you correct it"},
		"Held":           {"a change that does not come is told", Decision{Verb: Hold, Reason: input.Held, Message: "m"}, true, "not rolled out: m"},
		"UndoneBars":     {"a person has to act", Decision{Verb: Hold, Reason: input.Undone, Message: "m"}, true, "not rolled out: m. Pods that started since the change"},
		"Evicting":       {"pods go one by one", Decision{Verb: Evict, Reason: input.Evicting, Message: "m"}, false, "one at a time for m"},
		"Evicted":        {"the end of it", Decision{Verb: Evict, Reason: input.Evicted, Message: "m"}, false, "newer than m"},
		"Refreshed":      {"nothing restarts", Decision{Verb: Refresh, Reason: input.Refreshed, Message: "m"}, false, "refresh mounted files for m"},
		"NotRefreshed":   {"an environment cannot be refreshed", Decision{Verb: Refresh, Reason: input.Refreshed, Message: "m", Due: []input.Finding{{ID: app}}}, true, "by subPath: configmap/app"},
		"StrategyOff":    {"somebody has to act", Decision{Verb: Hold, Reason: input.StrategyOff, Message: "m"}, true, "not rolled out: m"},
		"BeyondStrategy": {"a person has to act", Decision{Verb: Hold, Reason: input.BeyondStrategy, Message: "m"}, true, "not rolled out: m"},
		"RecordTooNew":   {"a person has to act", Decision{Verb: Leave, Reason: input.RecordTooNew, Message: "m"}, true, "until that version runs again"},
		"NoTemplate":     {"somebody has to act", Decision{Verb: Leave, Reason: input.NoTemplate, Message: "m"}, true, "can't follow the object"},
		"UndoneSettled":  {"old pods and new pods differ from now on", Decision{Verb: Leave, Reason: input.Undone, Message: "m"}, true, "m. Pods that started since the change"},
		"Released":       {"the controller answers", Decision{Verb: Remember, Reason: input.Released, Message: "m"}, false, "accepted without a rollout: m"},
		"InStep":         {"nothing happened", Decision{Verb: Leave, Reason: input.InStep}, false, ""},
		"Baseline":       {"installing is silent", Decision{Verb: Remember, Reason: input.Baseline}, false, ""},
		"Quiet":          {"waiting is silent", Decision{Verb: Wait, Reason: input.QuietWindow}, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e announce.Event
			events := eventsFor(&kube.Workload{Identity: kube.Identity{Kind: kube.Deployment()}}, tc.decision, func() string { return ". Pods that started since the change" })
			told := len(events) > 0
			if told {
				e = events[len(events)-1]
			}
			if told != (tc.says != "") || !strings.Contains(e.Note, tc.says) || e.Warning != tc.warning {
				t.Errorf("%s: event %+v, told %t", tc.reason, e, told)
			}
			if told && (events[0].Reason != string(tc.decision.Reason) || e.Action == "") {
				t.Errorf("the event has the reason %q and the action %q", events[0].Reason, e.Action)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	in := Observation{
		Intent: settings.Intent{Mistakes: settings.Mistakes{Unknown: []string{"lockstep.dev/relaod"}, Warnings: []settings.Problem{{Key: "k", Value: "v", Accepted: "a"}, {Key: settings.Observe, Value: "yes", Accepted: "a"}}}},
		Assessment: input.Assessment{
			Findings: []input.Finding{inStep(app)},
			Warnings: []input.Warning{
				{Reason: input.SourceUnknown, Text: "the annotation names secret/db, which does not exist"},
				{Reason: input.InvalidAnnotation, Text: "configmap/app: odd; it has no effect"},
			},
		}, State: WorkloadState{OtherInstallation: "team-a"},
	}
	var notes []string
	for _, e := range warnings(&kube.Workload{Identity: kube.Identity{Key: web("a"), Kind: kube.Deployment()}}, in) {
		notes = append(notes, e.Reason+": "+e.Note)
		if !e.Warning || e.Action == string(Leave) {
			t.Errorf("%q is no warning, or looks like a decision: %+v", e.Note, e)
		}
	}
	want := []string{
		`InvalidAnnotation: namespace shop: annotation k: "v" isn't valid; accepted: a; it has no effect`,
		`InvalidAnnotation: namespace shop: annotation lockstep.dev/observe: "yes" isn't valid; accepted: a; it counts as true until you correct it`,
		"InvalidAnnotation: annotation lockstep.dev/relaod is unknown and has no effect; known annotations: " + strings.Join(settings.ForWorkloads(), ", "),
		"SourceUnknown: the annotation names secret/db, which does not exist",
		"InvalidAnnotation: configmap/app: odd; it has no effect",
		"OtherInstallation: another Lockstep installation, in namespace team-a, rolled out this workload; let only one of them follow its namespace",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWarnsOfWhatTheStrategyCannotDeliver: beside what it can.
func TestWarnsOfWhatTheStrategyCannotDeliver(t *testing.T) {
	t.Parallel()
	intent := auto()
	intent.Strategy = settings.StrategyRefresh
	both := Observation{Intent: intent, Assessment: input.Assessment{Findings: []input.Finding{due(app, 0), image(due(db, 0))}}}
	if got := warnings(&kube.Workload{Identity: kube.Identity{Kind: kube.Deployment()}}, both); len(got) != 1 || got[0].Reason != string(input.BeyondStrategy) || !strings.Contains(got[0].Note, "image/web") {
		t.Errorf("told %+v", got)
	}
	alone := Observation{Intent: intent, Assessment: input.Assessment{Findings: []input.Finding{image(due(db, 0))}}}
	if got := warnings(&kube.Workload{Identity: kube.Identity{Kind: kube.Deployment()}}, alone); len(got) != 0 {
		t.Errorf("told %+v besides the decision, which says it", got)
	}
}

// TestJoined: events of one reason are one event, because those that come together
// would be counted as one that repeats, and only the first be read.
func TestJoined(t *testing.T) {
	t.Parallel()
	got := joined([]announce.Event{{Reason: "A", Note: "one"}, {Reason: "B", Note: "two"}, {Reason: "A", Note: "three"}})
	want := []announce.Event{{Reason: "A", Note: "one; three"}, {Reason: "B", Note: "two"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFailureEvent(t *testing.T) {
	t.Parallel()
	e := failureEvent(&kube.Workload{Identity: kube.Identity{Kind: kube.Deployment()}}, Decision{Verb: RollOut, Message: "configmap/app 1 -> 2"}, errors.New("quota"))
	if !e.Warning || e.Reason != string(input.ReloadFailed) || !strings.Contains(e.Note, "configmap/app 1 -> 2: quota") {
		t.Errorf("event %+v", e)
	}
}

func TestReportedOnce(t *testing.T) {
	t.Parallel()
	r := newReported()
	steps := []struct {
		reason string
		key    kube.Key
		text   string
		want   bool
	}{
		{"news", web("a"), "waits", true},
		{"the same again", web("a"), "waits", false},
		{"another workload", web("b"), "waits", true},
		{"other words", web("a"), "moved", true},
		{"the first words again are news again", web("a"), "waits", true},
	}
	for _, s := range steps {
		now := lastReport{input.QuietWindow, s.text}
		if got := r.replace(s.key, now) != now; got != s.want {
			t.Errorf("%s: %s of %s is new: %t", s.reason, s.text, s.key.Name, got)
		}
	}
	r.forget(web("a"))
	if before := r.replace(web("a"), lastReport{text: "waits"}); before != (lastReport{}) {
		t.Error("a workload that is made anew is told of anew")
	}
}

func TestPendingCounts(t *testing.T) {
	t.Parallel()
	r := newReported()
	for i, step := range []struct {
		name   string
		waits  time.Duration // zero when it does not wait
		want   int
		oldest time.Duration
	}{{"a", 2, 1, 2}, {"a", 2, 1, 2}, {"b", 1, 2, 2}, {"a", 0, 1, 1}, {"c", 0, 1, 1}} {
		d := Decision{Reason: input.Held}
		if step.waits != 0 {
			d.PendingSince = now.Add(-step.waits)
		}
		r.setStanding(web(step.name), d, nil)
		got := r.tally(now)
		if got.pending[input.Held] != step.want || !got.oldest[input.Held].Equal(now.Add(-step.oldest)) {
			t.Errorf("step %d: %d workloads wait since %s, want %d", i, got.pending[input.Held], got.oldest[input.Held], step.want)
		}
	}
	r.forget(web("b"))
	if got := r.tally(now); len(got.pending) != 0 || len(got.oldest) != 0 {
		t.Errorf("%v workloads wait after the last one was deleted", got)
	}
}

// TestBlockedCounts: a workload with a mistake is counted until the mistake is corrected,
// and waits only when a change is due.
func TestBlockedCounts(t *testing.T) {
	t.Parallel()
	r := newReported()
	r.setStanding(web("a"), Decision{Verb: Leave, Reason: input.InvalidAnnotation}, nil)
	r.setStanding(web("b"), Decision{Verb: Leave, Reason: input.InvalidAnnotation, PendingSince: now}, nil)
	r.setStanding(web("c"), Decision{Verb: Hold, Reason: input.Held, PendingSince: now}, nil)
	want := tally{
		pending: map[input.Reason]int{input.InvalidAnnotation: 1, input.Held: 1},
		oldest:  map[input.Reason]time.Time{input.InvalidAnnotation: now, input.Held: now},
		blocked: map[input.Reason]int{input.InvalidAnnotation: 2}, rollouts: map[string]int{},
	}
	if diff := cmp.Diff(want, r.tally(now), cmp.AllowUnexported(tally{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.setStanding(web("a"), Decision{Verb: Leave, Reason: input.InStep}, nil)
	r.forget(web("b"))
	if got := r.tally(now); len(got.blocked) != 0 {
		t.Errorf("%v are blocked after both mistakes were corrected", got.blocked)
	}
}

// TestFailedRolloutsCount: a digest whose rollout failed and that stays is counted, whatever else the
// workload waits for, until its rollout succeeds or another digest is given.
func TestFailedRolloutsCount(t *testing.T) {
	t.Parallel()
	failed := []input.Warning{{Reason: input.SourceUnknown}, {Reason: input.RolloutFailed}}
	r := newReported()
	for _, step := range []struct {
		reason   string
		name     string
		decision Decision
		warnings []input.Warning
		want     map[input.Reason]int
	}{
		{"nothing else is due", "a", Decision{Verb: Leave, Reason: input.RolloutFailed}, failed, map[input.Reason]int{input.RolloutFailed: 1}},
		{"a change of another input is held", "b", Decision{Verb: Hold, Reason: input.Held, PendingSince: now}, failed, map[input.Reason]int{input.RolloutFailed: 2}},
		{"a setting is wrong too", "c", Decision{Verb: Leave, Reason: input.InvalidAnnotation}, failed, map[input.Reason]int{input.RolloutFailed: 3, input.InvalidAnnotation: 1}},
		{"another warning is no failure", "d", Decision{Verb: Leave, Reason: input.InStep}, failed[:1], map[input.Reason]int{input.RolloutFailed: 3, input.InvalidAnnotation: 1}},
		{"the rollout succeeded after all", "a", Decision{Verb: Leave, Reason: input.InStep}, nil, map[input.Reason]int{input.RolloutFailed: 2, input.InvalidAnnotation: 1}},
		{"another digest was given, and the hold lasts", "b", Decision{Verb: Hold, Reason: input.Held, PendingSince: now}, nil, map[input.Reason]int{input.RolloutFailed: 1, input.InvalidAnnotation: 1}},
	} {
		r.setStanding(web(step.name), step.decision, step.warnings)
		got := r.tally(now)
		if diff := cmp.Diff(step.want, got.blocked); diff != "" {
			t.Errorf("%s: blocked (-want +got):\n%s", step.reason, diff)
		}
		if got.pending[input.RolloutFailed] != 0 {
			t.Errorf("%s: %d wait for the image that they have", step.reason, got.pending[input.RolloutFailed])
		}
	}
	r.forget(web("c"))
	if got := r.tally(now).blocked; len(got) != 0 {
		t.Errorf("%v are counted after the last one was deleted", got)
	}
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*Options)
		says   []string
	}{
		"Default":   {"the defaults are valid", func(*Options) {}, nil},
		"Negative":  {"a window before the change", func(o *Options) { o.Quiet = -1 }, []string{"quiet"}},
		"Crossed":   {"a bound below what it bounds", func(o *Options) { o.MaxDelay = time.Second }, []string{"maximum delay 1s", "5s"}},
		"NoWorkers": {"nobody works", func(o *Options) { o.Workers = 0 }, []string{"workers"}},
		"Two":       {"everything that is wrong is told at once", func(o *Options) { o.Workers, o.MaxDelay = 0, 0 }, []string{"workers", "maximum delay"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := DefaultOptions()
			tc.change(&o)
			err := o.Validate()
			if (err != nil) != (len(tc.says) > 0) {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %q does not say %q", tc.reason, err, text)
				}
			}
		})
	}
}

// TestBusiestWorkload: what counts is how often one workload was moved, not how many were, and
// what is older than an hour does not.
func TestBusiestWorkload(t *testing.T) {
	t.Parallel()
	s := newScene()
	loop := s.loop()
	move := func(times int, name string) {
		for range times {
			s.workload.Key.Name, s.entry = name, nil
			s.findings = []input.Finding{due(app, 10*time.Second)}
			if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
				t.Fatal(err)
			}
			s.clock = s.clock.Add(10 * time.Minute)
		}
	}
	for _, step := range []struct {
		times int
		name  string
		want  float64
	}{
		{1, "first", 1}, {1, "second", 1}, {1, "third", 1}, {2, "first", 3}, {9, "second", 5},
	} {
		move(step.times, step.name)
		if got := s.metric(t, "lockstep_busiest_workload_reloads", s.workload.Key.Namespace); got != step.want {
			t.Errorf("after %d of %s it shows %v, want %v", step.times, step.name, got, step.want)
		}
	}
	s.clock = s.clock.Add(time.Hour)
	if got := s.metric(t, "lockstep_busiest_workload_reloads"); got != 0 {
		t.Errorf("an hour later it shows %v", got)
	}
}

// TestChangesOfContentThatWentBack: pods may have loaded a version in between, and nobody knows which.
func TestChangesOfContentThatWentBack(t *testing.T) {
	t.Parallel()
	f := due(app, 0)
	f.Delivered = f.Current
	if got, want := changes([]input.Finding{f}), "configmap/app unknown -> "+f.Current.Short(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
