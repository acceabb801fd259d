package rollouts

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

var (
	v1 = fingerprint.Version{Basis: "1:*", Sum: "11111111111111111111111111111111"}
	v2 = fingerprint.Version{Basis: "1:*", Sum: "22222222222222222222222222222222"}

	now = time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	app = input.ConfigMap("app")
	db  = input.Secret("db")
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// due is a source that changed so long ago.
func due(source input.ID, changed time.Duration) input.Finding {
	return input.Finding{ID: source, Standing: input.Due, Reason: input.Changed, Versions: input.Versions{Delivered: v1, Current: v2, Shows: input.Tracked(v2.Short())}, ChangedAt: ago(changed), Live: true}
}

func inStep(source input.ID) input.Finding {
	return input.Finding{ID: source, Standing: input.Settled, Reason: input.InStep, Versions: input.Versions{Delivered: v1, Current: v1, Shows: input.Tracked(v1.Short())}, Live: true}
}

func recorded(source input.ID, reason input.Reason) input.Finding {
	return input.Finding{ID: source, Standing: input.Record, Reason: reason, Versions: input.Versions{Current: v1, Shows: input.Tracked(v1.Short())}, Live: true}
}

func manySources(n int) []input.Finding {
	all := make([]input.Finding, n)
	for i := range all {
		all[i] = inStep(input.ConfigMap(fmt.Sprintf("app-%d", i)))
	}
	return all
}

func with(f input.Finding, change func(*input.Finding)) input.Finding {
	change(&f)
	return f
}

func inVolume(f *input.Finding) { f.Refresh = input.Everything }

func barred(f input.Finding, reason input.Reason, by string) input.Finding {
	f.Bars = append(f.Bars, input.Bar{Reason: reason, By: by})
	return f
}

// image is an input that comes with the pod template.
func image(f input.Finding) input.Finding {
	f.ID, f.Live = input.Image("web"), false
	return f
}

// auto is the intent of a workload that follows what it references.
func auto() settings.Intent {
	return settings.Intent{Mode: settings.Follow, Auto: true, Quiet: 5 * time.Second, Strategy: settings.StrategyTemplate}
}

// A person who forces a move named the workload, and reads the source's name once.
func TestForcedHoldNamesTheSourceOnce(t *testing.T) {
	t.Parallel()
	const want = `configmap/app is held ("audit")`
	if got := Decide(decideCase{findings: []input.Finding{barred(inStep(app), input.Held, "audit")}, force: ForceRollOut}.input()); got.Verb != Hold || got.Message != want {
		t.Errorf("%s with %q, want %q", got.Verb, got.Message, want)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(tc.input())
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Decision{}, "Message", "Due", "DelaySince")); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			for _, text := range tc.says {
				if !strings.Contains(got.Message, text) {
					t.Errorf("%s: the message %q does not say %q", tc.reason, got.Message, text)
				}
			}
			wantMoves := tc.wantMoves()
			if diff := cmp.Diff(wantMoves, got.Due); diff != "" {
				t.Errorf("%s: what is due (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEvictionSteps: the series is on record before a pod goes, each pod goes after the
// one before has a successor, and it is over when no pod is older.
func TestEvictionSteps(t *testing.T) {
	t.Parallel()
	old := pods.Pod{Name: "old", Created: ago(time.Hour), Ready: true}
	young := pods.Pod{Name: "young", Created: now, Ready: true}
	const order = "configmap/app~2222222222"
	begun := record.Entry{Pending: record.Pending{PendingSince: ago(time.Hour)}, Eviction: record.Eviction{For: order, Since: ago(time.Minute), Pods: 2}}
	cases := map[string]struct {
		reason   string
		entry    record.Entry
		pods     []pods.Pod
		replicas int
		want     Eviction
		done     bool
	}{
		"Begin":        {"the number of pods is on record where the workload does not say it", record.Entry{}, []pods.Pod{old, old}, 0, Eviction{For: order, Begin: true, Pods: 2}, false},
		"BeginCounted": {"one that says how many it wants needs no count", record.Entry{}, []pods.Pod{old, old}, 2, Eviction{For: order, Begin: true}, false},
		"BeginAnew":    {"the content changed again", record.Entry{Eviction: record.Eviction{For: "configmap/app~1111111111", Since: ago(time.Minute)}}, []pods.Pod{old}, 1, Eviction{For: order, Begin: true}, false},
		"NotOnRecord":  {"the time of the series is not known", record.Entry{Eviction: record.Eviction{For: order}}, []pods.Pod{old}, 1, Eviction{For: order, Begin: true}, false},
		"Next":         {"the next one goes", begun, []pods.Pod{old, young}, 0, Eviction{For: order, Victim: &old}, false},
		"Wait":         {"there is one less than there were", begun, []pods.Pod{old}, 0, Eviction{For: order}, false},
		"Done":         {"no pod is older", begun, []pods.Pod{young}, 0, Eviction{For: order}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := decideCase{intent: func(in *settings.Intent) { in.Strategy = settings.StrategyEvict }, findings: []input.Finding{due(app, time.Hour)}}.input()
			in.Entry, in.Pods.All, in.State.Replicas = tc.entry, tc.pods, tc.replicas
			if counted := tc.want.Begin && tc.replicas > 0; in.NeedsPods() == counted {
				t.Errorf("the pods are asked for: %t", !counted)
			}
			d := Decide(in)
			if diff := cmp.Diff(tc.want, d.Eviction); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if d.Delivered != tc.done || (d.Reason == input.Evicted) != tc.done || (d.Recheck == 0) != tc.done {
				t.Errorf("%s: %s, delivered %t, next look after %s", tc.reason, d.Reason, d.Delivered, d.Recheck)
			}
		})
	}
}

// TestPodsThatCannotBeListed: that no pod is known is not that no pod is left.
func TestPodsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	in := decideCase{intent: func(in *settings.Intent) { in.Strategy = settings.StrategyEvict }, findings: []input.Finding{due(app, time.Hour)}}.input()
	in.Entry = record.Entry{Eviction: record.Eviction{For: "configmap/app~2222222222", Since: ago(time.Minute)}}
	in.Pods.Problem = errors.New("no answer")
	if d := Decide(in); d.Verb != Evict || d.Delivered || d.Eviction.Victim != nil || d.Recheck == 0 {
		t.Errorf("decided %+v, want it to wait", d)
	}
}

// TestEstimate: who reads live is told that bounds and times are not known.
func TestEstimate(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		in := tc.input()
		in.Estimate = true
		if !Decide(in).Estimate {
			t.Errorf("%s: the decision is not marked", name)
		}
	}
}

// TestNoReasonIsUntested fails when somebody adds a reason without a case.
func TestNoReasonIsUntested(t *testing.T) {
	t.Parallel()
	tested := map[input.Reason]bool{
		input.ReloadFailed:   true, // TestFailureEvent: an error is no decision
		input.Evicted:        true, // TestEvictionSteps: the end of a series
		input.NotRefreshable: true, // TestEventsFor
		input.SourceUnknown:  true, // TestWarnings
		input.TooManyKeys:    true, // the same
		input.ReloadOff:      true, // TestOff
		input.KindOff:        true, // TestServes in package ask: the controller does not see such a workload

		input.OtherInstallation: true, // TestWarnings
		input.AfterIgnored:      true, // TestAfterOf: it only warns
		input.Following:         true, // TestFollowingIsToldOnce
		input.RecordUnwritable:  true, // it is told of the record, not of a workload
	}
	for _, tc := range decideCases() {
		tested[tc.want.Reason] = true
		for _, f := range tc.findings {
			tested[f.Reason] = true // the reasons of inputs are decided in package configs
		}
	}
	ofInputs := []input.Reason{input.NewBasis, input.Arrived, input.Missing, input.DeliveredByRollout, input.DeliveredBefore}
	for _, r := range ofInputs {
		d := Decide(decideCase{findings: []input.Finding{recorded(app, r)}}.input())
		if d.Verb != Remember || d.Reason != r {
			t.Errorf("an input with the reason %s gives %s %s, want it remembered for that reason", r, d.Verb, d.Reason)
		}
		tested[r] = true
	}
	for _, e := range input.FollowExplanations() {
		if !tested[e.Reason] {
			t.Errorf("no case of TestDecide gives %s", e.Reason)
		}
	}
}

// TestSameSituationSameWords: people are told once, which depends on it.
func TestSameSituationSameWords(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		earlier := tc.input()
		later := tc.input()
		later.Now = later.Now.Add(time.Millisecond)
		if a, b := Decide(earlier).Message, Decide(later).Message; a != b {
			t.Errorf("%s: %q, and a moment later %q", name, a, b)
		}
	}
}

// TestOneWorkloadBeyondTheRecord: a workload that can't fit on record, even alone, is told to
// follow less, and not that others take its room. One that is on record already stays followed.
func TestOneWorkloadBeyondTheRecord(t *testing.T) {
	t.Parallel()
	sources := func(kind input.Kind, count, length int) Observation {
		in := Observation{Intent: auto(), Entry: record.Entry{ID: "Deployment.apps/shop/web", UID: "4711"}, Now: now}
		for i := range count {
			f := inStep(input.ID{Kind: kind, Name: fmt.Sprintf("%0*d", length, i)})
			in.Findings = append(in.Findings, f)
		}
		return in
	}
	known := sources(input.KindImage, 120, 5)
	known.Entry.Inputs = map[input.ID]record.Delivered{}
	for _, f := range known.Findings {
		known.Entry.Inputs[f.ID] = record.Delivered{Version: f.Current}
	}
	cases := map[string]struct {
		reason string
		in     Observation
		want   bool
	}{
		"Sources":     {"most names are shorter", sources(input.KindConfigMap, 230, 24), false},
		"LongNames":   {"within the bounds of count and names", sources(input.KindConfigMap, 240, 60), true},
		"Images":      {"more than any pod has", sources(input.KindImage, 80, 5), false},
		"ManyImages":  {"fewer than there may be annotations", sources(input.KindImage, 120, 5), true},
		"KnownImages": {"an earlier program put it on record", known, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Decide(tc.in)
			if got := d.Reason == input.TooManySources; got != tc.want || got && !strings.Contains(d.Message, "64 KiB in the record") {
				t.Errorf("%s: %s %q, room %d", tc.reason, d.Reason, d.Message, tc.in.room())
			}
		})
	}
}

// TestDeliveredByNamesTheWriter: a rollout by another program is the delivery, and the message
// names that program.
func TestDeliveredByNamesTheWriter(t *testing.T) {
	t.Parallel()
	for reason, want := range map[input.Reason]string{
		input.DeliveredByRollout: app.String() + "; the pod template was last written by Reloader",
		input.Baseline:           app.String(),
	} {
		in := Observation{Intent: auto(), Now: now, State: WorkloadState{TemplateBy: "Reloader"}, Assessment: input.Assessment{Findings: []input.Finding{recorded(app, reason)}}}
		if d := Decide(in); d.Verb != Remember || d.Reason != reason || d.Message != want {
			t.Errorf("%s %s %q, want %q", d.Verb, d.Reason, d.Message, want)
		}
	}
}
