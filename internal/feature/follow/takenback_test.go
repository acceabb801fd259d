package follow

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// templated is a workload whose controller has acted on its template.
func templated() *kube.Workload {
	w := &kube.Workload{Key: web("web"), Kind: kube.Deployment(), UID: "4711", Revision: 3}
	w.Status.Observed, w.Target.Generation = true, 9
	return w
}

// undoneHistory is that of a workload that was taken back from revision 2 to 1.
func undoneHistory() []timeline.Revision {
	return []timeline.Revision{{Name: "web-a", Number: 3, Earlier: []int64{1}, Current: true}, {Name: "web-b", Number: 2}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	w := templated()
	same := w.Template()
	ours := record.Template{Generation: 8, Sum: "ours"}
	moved := templated()
	moved.MovedAt = now
	unobserved := templated()
	unobserved.Status.Observed = false
	aborted := templated()
	aborted.Status.Aborted, aborted.Replaced = true, "1"
	rewritten := templated()
	rewritten.ResourceVersion = "13"
	rewritten.First(mirror.Arrival{Watched: true})
	given := func(from timeline.Origin, back string) map[input.ID]record.Given {
		return map[input.ID]record.Given{app: {Version: v1, From: from, Back: back}}
	}
	cases := map[string]struct {
		reason   string
		workload *kube.Workload
		known    record.Template
		inputs   map[input.ID]record.Given
		finding  input.Finding
		release  int64
		want     string // the revision that it is barred for, empty when it is not
		asks     int    // for revisions
		waits    bool
		keeps    bool // the template on record
	}{
		"Nothing":   {reason: "nobody wrote: no request", known: same, inputs: given("1", ""), keeps: true},
		"Scaled":    {reason: "another generation of the same template: no request", known: record.Template{Generation: 8, Sum: same.Sum}, inputs: given("1", ""), keeps: true},
		"TakenBack": {reason: "another writer's template", known: ours, inputs: given("1", ""), want: "web-a", asks: 1},
		"ImageTakenBack": {
			reason: "an image is due by what the template has, and was taken back all the same", known: ours,
			inputs:  map[input.ID]record.Given{input.Image("web"): {Version: v1, From: "1"}},
			finding: with(image(inStep(app)), func(f *input.Finding) { f.Standing, f.Reason = input.Due, input.Unpinned }), want: "web-a", asks: 1,
		},
		"ImageMoved": {
			reason: "another digest than the one that was taken back is not barred", known: ours,
			inputs:  map[input.ID]record.Given{input.Image("web"): {Version: v1, From: "1"}},
			finding: image(due(app, 0)), asks: 1,
		},
		"StaysBack":     {reason: "what is on record stays", known: same, inputs: given("1", "web-a"), want: "web-a", keeps: true},
		"NoOrigins":     {reason: "without evidence there is nothing to ask", known: ours, inputs: given("", "")},
		"Unobserved":    {reason: "its controller has not acted yet", workload: unobserved, known: ours, inputs: given("1", ""), waits: true},
		"OldCache":      {reason: "the cache does not have our own patch yet", known: record.Template{Generation: 10, Sum: "ours"}, inputs: given("1", ""), keeps: true},
		"OlderProgram":  {reason: "the entry does not say which template it knows", inputs: given("1", "")},
		"Rolled":        {reason: "lockstep roll ends it", workload: moved, known: ours, inputs: given("1", "web-a")},
		"ByThisRollout": {reason: "what the rollout itself gave", known: ours, inputs: given("1", "web-a"), finding: recorded(app, input.DeliveredByRollout), asks: 1},
		"RolledAborted": {reason: "the rollout that gave it was aborted", workload: aborted, known: ours, inputs: given("", ""), finding: recorded(app, input.DeliveredByRollout), want: "web-a", asks: 1},
		"AnotherSeen":   {reason: "another version is not barred", known: ours, inputs: given("1", ""), finding: due(app, time.Hour), asks: 1},
		"KilledAndGone": {reason: "delivered, not recorded, and taken back to the template on record", known: same, finding: recorded(app, input.DeliveredBefore), want: "web-a", asks: 1, keeps: true},
		"Released":      {reason: "a person accepts it", known: same, inputs: given("1", "web-a"), release: 12, keeps: true},
		"ReleasedFirst": {reason: "an undo brought an earlier release back that was not seen then", workload: rewritten, known: ours, inputs: given("1", ""), release: 12, want: "web-a", asks: 1},
		"ReleasedThen":  {reason: "another writer's rollout came after the release of what is on record", workload: rewritten, known: ours, inputs: given("1", "web-a"), release: 12, asks: 1},
		"ReleasedOnce":  {reason: "an earlier release is used up", known: same, inputs: given("1", "web-a"), release: 11, want: "web-a", keeps: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			g := &Gatherer{Revisions: func(context.Context, *kube.Workload) ([]timeline.Revision, error) {
				asked++
				history := undoneHistory()
				history[1].Shown = input.Shown{app: inStep(app).Shows}
				return history, nil
			}}
			workload, finding := tc.workload, tc.finding
			if workload == nil {
				workload = templated()
			}
			if finding.Reason == "" {
				finding = inStep(app)
			}
			in := Input{Intent: auto(), Findings: []input.Finding{finding}, Entry: record.Entry{Template: tc.known, Inputs: tc.inputs, Released: 11, MovedAt: ago(time.Hour)}}
			in.Intent.Release = tc.release
			if err := g.judge(t.Context(), workload, &in); err != nil {
				t.Fatal(err)
			}
			by, barred := in.Findings[0].BarredFor(input.Undone)
			if barred != (tc.want != "") || by != tc.want || asked != tc.asks || in.Template.Unobserved != tc.waits {
				t.Errorf("%s: barred %t by %q after %d requests, waits %t", tc.reason, barred, by, asked, in.Template.Unobserved)
			}
			if want := workload.Template(); !tc.keeps && in.Template.Now != want || tc.keeps && in.Template.Now != tc.known {
				t.Errorf("%s: it takes %+v into account, known was %+v and there is %+v", tc.reason, in.Template.Now, tc.known, want)
			}
		})
	}
}

// TestDeliveredBeforeAndUsedAgain: what a patch gave that is not on record came with the
// first use of its revision. An undo to one that was made after that takes nothing back.
func TestDeliveredBeforeAndUsedAgain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		revisions []timeline.Revision // that show it
		want      timeline.Origin
	}{
		"Once":      {"by the only one", []timeline.Revision{{Name: "web-c", Number: 6}}, timeline.AfterNumber(5)},
		"Redone":    {"another writer went away from it and back", []timeline.Revision{{Name: "web-c", Number: 6, Earlier: []int64{4}}}, timeline.AfterNumber(3)},
		"Returned":  {"it had shown that before what is on record", []timeline.Revision{{Name: "web-c", Number: 6, Earlier: []int64{1, 4}}}, timeline.AfterNumber(3)},
		"EditedOut": {"another writer's revision kept it", []timeline.Revision{{Name: "web-d", Number: 6}, {Name: "web-c", Number: 5}}, timeline.AfterNumber(4)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finding, w := recorded(app, input.DeliveredBefore), templated()
			w.Revision, w.Shown = 6, input.Shown{app: finding.Shows}
			g := &Gatherer{Revisions: func(context.Context, *kube.Workload) ([]timeline.Revision, error) {
				for i := range tc.revisions {
					tc.revisions[i].Shown = w.Shown
				}
				return tc.revisions, nil
			}}
			in := Input{Intent: auto(), Findings: []input.Finding{finding}, Entry: record.Entry{
				Template: record.Template{Generation: 8, Sum: "ours"}, MovedFrom: 3, Inputs: map[input.ID]record.Given{app: {Version: v1}},
			}}
			if err := g.judge(t.Context(), w, &in); err != nil {
				t.Fatal(err)
			}
			if got := in.Template.From[app]; got != tc.want {
				t.Errorf("%s: given after %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBarsAddUp: a hold on a source that was taken back is a second bar.
func TestBarsAddUp(t *testing.T) {
	t.Parallel()
	in := Input{Findings: []input.Finding{barred(inStep(app), input.Held, "audit")}, Template: Template{Back: map[input.ID]string{app: "web-a"}}}
	in.bar(templated())
	want := []input.Bar{{Reason: input.Held, By: "audit"}, {Reason: input.Undone, By: "web-a"}}
	if diff := cmp.Diff(want, in.Findings[0].Bars); diff != "" {
		t.Errorf("bars (-want +got)\n%s", diff)
	}
}

// TestRememberOrigins: what a rollout gave is on record with what came before it.
func TestRememberOrigins(t *testing.T) {
	t.Parallel()
	before := record.Entry{Inputs: map[input.ID]record.Given{app: {Version: v1, From: "1", Back: "web-a"}}, Template: record.Template{Generation: 8, Sum: "a"}}
	patched := kube.Moved{At: now, Template: record.Template{Generation: 9, Sum: "b"}}
	cases := map[string]struct {
		reason  string
		outcome outcome
		want    record.Given
	}{
		"Moved": {"by our patch", outcome{
			decision: Decision{Verb: Move, Delivered: true, Moves: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)},
			moved: patched, from: "5", template: Template{Now: before.Template},
		}, record.Given{Version: v2, Shown: due(app, 0).Shows, From: "5", Was: v1.Short()}},
		"ByRollout": {"by another rollout", outcome{
			decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)},
			template: Template{Now: patched.Template, From: map[input.ID]timeline.Origin{app: "4"}},
		}, record.Given{Version: v1, From: "4"}},
		"Evicted": {"by no rollout", outcome{
			decision: Decision{Verb: Evict, Delivered: true, Moves: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}, template: Template{Now: patched.Template},
		}, record.Given{Version: v2}},
		"StaysBack": {"not at all", outcome{
			decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}, template: Template{Now: patched.Template, Back: map[input.ID]string{app: "web-c"}},
		}, record.Given{Version: v1, From: "1", Back: "web-c"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := remember(before, tc.outcome)
			if diff := cmp.Diff(tc.want, got.Inputs[app]); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			if got.Template != patched.Template {
				t.Errorf("%s: it takes %+v into account, want %+v", tc.reason, got.Template, patched.Template)
			}
		})
	}
}
