package ask_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
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
		"Annotation": {"also one that an undo brought back", rollouts.Observation{Intent: settings.Intent{Held: true, HeldBy: "freeze"}}, input.Undone, []string{`it is held by annotation lockstep.dev/hold ("freeze"): a change waits until that ends`}},
		"Undone":     {"one that only the record has", rollouts.Observation{Template: rollouts.Template{Hold: record.Hold{On: true, By: "freeze", Undone: true}}}, input.Undone, []string{`it is held ("freeze") although an undo removed the annotation lockstep.dev/hold; lockstep release ends it: a change waits until that ends`}},
		"Waits":      {"the state says it already", rollouts.Observation{Intent: settings.Intent{Held: true}}, input.Held, nil},
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
			if e := ask.Explain(s); !strings.HasPrefix(e.Meaning, "It is only observed") {
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
		"Released":  {"the hold is gone", input.Held, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Reason: input.InStep}}}}, nil, string(input.InStep)},
		"StillHeld": {"it is as on record", input.Held, rollouts.Observation{Intent: settings.Intent{Mode: settings.Follow, Held: true}, Assessment: input.Assessment{Findings: []input.Finding{{ID: input.ConfigMap("app"), Standing: input.Due, Reason: input.Changed}}}}, nil, ""},
		"Hidden":    {"who asks cannot read what the decision depends on", input.Held, rollouts.Observation{}, map[input.ID]string{input.Secret("db"): "forbidden"}, ""},
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
