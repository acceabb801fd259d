package follow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

func TestRemember(t *testing.T) {
	t.Parallel()
	old := record.Given{Version: v1, Shown: v1.Short()}
	given := func(g record.Given) map[input.Source]record.Given { return map[input.Source]record.Given{app: g} }
	movedAt := now.Add(time.Second)
	cases := map[string]struct {
		reason   string
		before   map[input.Source]record.Given
		outcome  outcome
		want     map[input.Source]record.Given
		wantMove time.Time
	}{
		"Move": {
			reason:  "a moved input was given the version that exists, and the template shows it",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Move, Delivered: true, Moves: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}, movedAt: movedAt},
			want:    given(record.Given{Version: v2, Shown: v2.Short()}), wantMove: movedAt,
		},
		"MoveShowsTheRest": {
			reason:  "a move shows every followed input, also one that was in step",
			before:  given(record.Given{Version: v1}),
			outcome: outcome{decision: Decision{Verb: Move, Delivered: true, Moves: []input.Finding{due(db, 0)}}, findings: []input.Finding{inStep(app), due(db, 0)}, movedAt: movedAt},
			want:    map[input.Source]record.Given{app: old, db: {Version: v2, Shown: v2.Short()}}, wantMove: movedAt,
		},
		"Wait": {
			reason:  "a pending change keeps what was given",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Wait, Moves: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(old),
		},
		"Hold": {
			reason:  "so does a hold, so that its release delivers",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Hold, Moves: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0)}},
			want:    given(old),
		},
		"Observe": {
			reason:  "what was only told counts as given; the template shows nothing new",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Observe, Delivered: true, Moves: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Given{Version: v2, Shown: v1.Short()}),
		},
		"NextJob": {
			reason:  "a CronJob was given what its next Job reads",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Remember, Delivered: true, Reason: input.NextJob, Moves: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}},
			want:    given(record.Given{Version: v2, Shown: v1.Short()}),
		},
		"Baseline": {
			reason:  "a first sight",
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.Baseline)}},
			want:    given(record.Given{Version: v1}),
		},
		"BaselineBesideAWait": {
			reason:  "a new input is remembered although another one waits",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Wait, Moves: []input.Finding{due(app, 0)}, PendingSince: now}, findings: []input.Finding{due(app, 0), recorded(db, input.Baseline)}},
			want:    map[input.Source]record.Given{app: old, db: {Version: v1}},
		},
		"SomebodysRollout": {
			reason:  "a template of somebody else shows nothing of ours to compare with",
			before:  given(record.Given{Version: v2, Shown: v2.Short()}),
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)}},
			want:    given(record.Given{Version: v1}),
		},
		"SomebodysRolloutThatKeepsOurs": {
			reason: "a template that still shows our patch is still compared",
			before: given(record.Given{Version: v2, Shown: v2.Short()}),
			outcome: outcome{
				decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)},
				template: input.Shown{app: v2.Short()},
			},
			want: given(record.Given{Version: v1, Shown: v2.Short()}),
		},
		"DeliveredBefore": {
			reason:  "our own patch is remembered as one, so that its undo is seen",
			before:  given(record.Given{Version: v2}),
			outcome: outcome{decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredBefore)}},
			want:    given(old),
		},
		"Dropped": {
			reason:  "what the workload no longer follows is forgotten",
			before:  map[input.Source]record.Given{app: old, db: old},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}},
			want:    given(old),
		},
		"Unreadable": {
			reason:  "what cannot be read now stays as it was given",
			before:  given(old),
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{{Source: app, Reason: input.Unreadable, Given: v1}}},
			want:    given(old),
		},
		"RolledByHand": {
			reason:  "a template that shows what exists was not taken back, whoever wrote it",
			before:  map[input.Source]record.Given{app: {Version: v1, Shown: "0000000000"}},
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}, template: input.Shown{app: v1.Short()}},
			want:    map[input.Source]record.Given{app: {Version: v1, Shown: v1.Short()}},
		},
		"UnreadableNeverSeen": {
			reason:  "and what was never read is not made up",
			outcome: outcome{decision: Decision{Verb: Leave}, findings: []input.Finding{{Source: app, Reason: input.Unreadable}}},
			want:    map[input.Source]record.Given{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := record.Entry{ID: "id", UID: "uid", Inputs: tc.before, PendingSince: ago(time.Minute)}
			kept := before.Clone()
			got := remember(before, tc.outcome)
			want := record.Entry{ID: "id", UID: "uid", Inputs: tc.want, PendingSince: tc.outcome.decision.PendingSince, MovedAt: tc.wantMove}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if !before.Equal(kept) {
				t.Errorf("the entry that was read has changed: %+v", before)
			}
		})
	}
}

func TestShownSkipsWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	missing := input.Finding{Source: db, Reason: input.Missing}
	if got, want := (input.Order{All: []input.Finding{due(app, 0), missing}}).Shown().String(), "configmap/app~2222222222"; got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
}
