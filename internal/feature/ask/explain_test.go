package ask_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
)

// TestExplainTellsOfAHold: a person who sees no change wait learns that the next one will.
func TestExplainTellsOfAHold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		live   follow.Input
		state  input.Reason
		want   []string
	}{
		"None":       {"nothing is held", follow.Input{}, input.Undone, nil},
		"Annotation": {"also one that an undo brought back", follow.Input{Intent: settings.Intent{Held: true, HeldBy: "freeze"}}, input.Undone, []string{`it is held by annotation lockstep.dev/hold ("freeze"): a change waits until that ends`}},
		"Undone":     {"one that only the record has", follow.Input{Template: follow.Template{Hold: record.Hold{On: true, By: "freeze", Undone: true}}}, input.Undone, []string{`it is held ("freeze") although an undo removed the annotation lockstep.dev/hold; lockstep release ends it: a change waits until that ends`}},
		"Waits":      {"the state says it already", follow.Input{Intent: settings.Intent{Held: true}}, input.Held, nil},
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
