package ask_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// TestExplainTellsOfAHold: a person who sees no change wait learns that the next one will.
func TestExplainTellsOfAHold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		live   rollouts.Observation
		state  input.Reason
		want   []string
	}{
		"None":       {"nothing is held", rollouts.Observation{}, input.Undone, nil},
		"Annotation": {"also one that an undo brought back", rollouts.Observation{Intent: settings.Intent{Held: true, HeldBy: "freeze"}}, input.Undone, []string{`it is held by annotation lockstep.dev/hold ("freeze"): changes wait until the hold ends`}},
		"Undone":     {"one that only the record has", rollouts.Observation{Template: rollouts.Template{Hold: record.Hold{On: true, By: "freeze", Undone: true}}}, input.Undone, []string{`it is held ("freeze"), although an undo removed the annotation lockstep.dev/hold; run lockstep release to end it: changes wait until the hold ends`}},
		"Waits":      {"the state says it already", rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Held: true}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed}}}}, input.Held, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := ask.Explain(ask.Situation{
				Workload: workload(kube.Deployment(), time.Time{}), Live: tc.live, Recorded: true, Readable: true,
				Entry: record.Entry{Decision: record.Decision{Reason: tc.state}},
			})
			if diff := cmp.Diff(tc.want, e.Notes); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if held := name != "None"; e.OwnHold != held {
				t.Errorf("%s: it is held itself: %t", tc.reason, e.OwnHold)
			}
		})
	}
}

// TestExplainAnObserver: what was only observed counts as given, and explain must not claim that
// pods have it.
func TestExplainAnObserver(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]ask.Situation{
		"Annotation": {Live: rollouts.Observation{Intent: settings.Intent{Observe: true}}},
		"Flag":       {Fleet: ask.Fleet{Serves: ask.Serves{Observe: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Workload, s.Recorded, s.Readable = workload(kube.Deployment(), time.Time{}), true, true
			s.Entry = record.Entry{Decision: record.Decision{Reason: input.InStep}}
			if e := ask.Explain(s); !strings.HasPrefix(e.Meaning, "Observe mode") {
				t.Errorf("it says %q", e.Meaning)
			}
		})
	}
}

// TestEstimateOfSettings: a person has changed what is on record as the reason, and the
// controller has not looked since.
func TestEstimateOfSettings(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		state  input.Reason
		live   rollouts.Observation
		hidden map[input.ID]string
		want   string
	}{
		"Released":     {"the hold is gone", input.Held, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Reason: input.InStep}}}}, nil, string(input.InStep)},
		"StillHeld":    {"it is as on record", input.Held, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Held: true}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed}}}}, nil, ""},
		"HeldInStep":   {"a hold that counts isn't denied by a quiet window that may be another", input.Held, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Held: true, Quiet: time.Hour}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed, ChangedAt: time.Now()}}}, Now: time.Now(), MaxDelay: 2 * time.Hour}, nil, ""},
		"PausedInStep": {"a pause isn't denied by a quiet window that may be another", input.Paused, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Quiet: time.Hour}, State: rollouts.WorkloadState{Rollout: health.Status{Paused: true}}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed, ChangedAt: time.Now()}}}, Now: time.Now(), MaxDelay: 2 * time.Hour}, nil, ""},
		"NewerInTurn":  {"a newer version waits for its turn too", input.AwaitsTurn, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed, Versions: input.Versions{Current: fingerprint.Version{Basis: "1:*", Sum: "77ab01c9de"}}}}}}, nil, string(input.AwaitsTurn)},
		"Undone":       {"an undo since the last decision", input.InStep, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Undone, Bars: []input.Bar{{Reason: input.Undone}}}}}}, nil, string(input.Undone)},
		"Redone":       {"the undo was undone", input.Undone, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Reason: input.InStep}}}}, nil, string(input.InStep)},
		"Hidden":       {"who asks cannot read what the decision depends on", input.Held, rollouts.Observation{}, map[input.ID]string{input.Secret("db"): "forbidden"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := ask.Explain(ask.Situation{
				Workload: workload(kube.Deployment(), time.Time{}), Live: tc.live, Hidden: tc.hidden, Recorded: true, Readable: true,
				Entry: record.Entry{Decision: record.Decision{Reason: tc.state}},
			})
			got := ""
			if e.Estimate != nil {
				got = e.Estimate.Reason
			}
			if got != tc.want {
				t.Errorf("%s: estimate %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestReverted: an input that was reverted isn't in step, and the workload can be released.
func TestReverted(t *testing.T) {
	t.Parallel()
	finding := input.Finding{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Undone, Bars: []input.Bar{{Reason: input.Undone}}}
	explain := func(f input.Finding) ask.Explanation {
		return ask.Explain(ask.Situation{
			Workload: workload(kube.Deployment(), time.Time{}), Recorded: true, Readable: true, Entry: record.Entry{Decision: record.Decision{Reason: input.InStep}},
			Live: rollouts.Observation{Assessment: input.Assessment{Findings: []input.Finding{f}}},
		})
	}
	if e := explain(finding); !e.Inputs[0].Undone || !e.IsReleasable() {
		t.Errorf("it is releasable: %t, with %+v", e.IsReleasable(), e.Inputs[0])
	}
	finding.Bars = nil
	if e := explain(finding); e.Inputs[0].Undone || e.IsReleasable() {
		t.Errorf("without a reversal it is releasable: %t, with %+v", e.IsReleasable(), e.Inputs[0])
	}
}

// TestUnresolvedImage: an image whose digest nobody knows is an input all the same.
func TestUnresolvedImage(t *testing.T) {
	t.Parallel()
	image, err := tagspec.ParseImage("registry.example/app:1.x")
	if err != nil {
		t.Fatal(err)
	}
	e := ask.Explain(ask.Situation{
		Workload: workload(kube.Deployment(), time.Time{}), Readable: true,
		Live: rollouts.Observation{Intent: settings.Intent{Images: []settings.ImageRequest{{Container: "app", Image: image}}}},
	})
	want := []ask.Use{{InputStatus: ask.InputStatus{Input: "image/app", Image: "registry.example/app:1.x"}, Followed: true, Note: "not on record"}}
	if diff := cmp.Diff(want, e.Inputs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUnreadableRecord: a first look at what may be on record long since says nothing.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	for readable, want := range map[bool]string{true: "no controller has checked it yet", false: "the record cannot be read with your permissions, and the events that you can read don't show it"} {
		e := ask.Explain(ask.Situation{
			Workload: workload(kube.Deployment(), time.Time{}), Readable: readable,
			Live: rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Record, Reason: input.Baseline}}}},
		})
		if e.State.Reason != ask.NotOnRecord || e.State.Message != want || (e.Estimate != nil) != readable {
			t.Errorf("readable %t: %+v, estimate %+v", readable, e.State, e.Estimate)
		}
	}
}
