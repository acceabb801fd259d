package rollouts

import (
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
	w := &kube.Workload{Identity: kube.Identity{Key: web("web"), Kind: kube.Deployment(), UID: "4711"}, Revision: 3}
	w.Status.Observed, w.Target.Generation = true, 9
	return w
}

// undoneHistory is that of a workload that was reverted from revision 2 to 1.
func undoneHistory() []timeline.Revision {
	return []timeline.Revision{{Name: "web-a", Number: 3, Earlier: []int64{1}, Current: true}, {Name: "web-b", Number: 2}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	w := templated()
	same := w.Template()
	ours := record.Template{Generation: 8, Sum: "ours"}
	moved := templated()
	moved.RolledOutAt = now
	unobserved := templated()
	unobserved.Status.Observed = false
	patched := templated()
	patched.Status.Observed, patched.Shown = false, input.Shown{app: inStep(app).Shows}
	aborted := templated()
	aborted.Status.Aborted, aborted.Replaced = true, "1"
	paused := templated()
	paused.Status.Paused = true
	rewritten := templated()
	rewritten.ResourceVersion = "13"
	rewritten.First(mirror.Arrival{Watched: true})
	given := func(from timeline.Origin, back string) map[input.ID]record.Delivered {
		return map[input.ID]record.Delivered{app: {Version: v1, From: from, RevertedTo: back}}
	}
	cases := map[string]struct {
		reason   string
		workload *kube.Workload
		known    record.Template
		inputs   map[input.ID]record.Delivered
		finding  input.Finding
		release  int64
		want     string // the revision that it is barred for, empty when it is not
		asks     bool   // for revisions
		waits    bool
		keeps    bool // the template on record
	}{
		"Nothing":    {reason: "nobody wrote: no request", known: same, inputs: given("1", ""), keeps: true},
		"Scaled":     {reason: "another generation of the same template: no request", known: record.Template{Generation: 8, Sum: same.Sum}, inputs: given("1", ""), keeps: true},
		"SameNumber": {reason: "the same template and the same revision: no request", known: record.Template{Generation: 8, Sum: same.Sum, Number: 3}, inputs: given("1", ""), keeps: true},
		"Gone":       {reason: "the same template, after another one that came and went", known: record.Template{Generation: 8, Sum: same.Sum, Number: 1}, inputs: given("1", ""), want: "web-a", asks: true},
		"Reverted":   {reason: "another writer's template", known: ours, inputs: given("1", ""), want: "web-a", asks: true},
		"ImageReverted": {
			reason: "an image is due by what the template has, and was reverted all the same", known: ours,
			inputs:  map[input.ID]record.Delivered{input.Image("web"): {Version: v1, From: "1"}},
			finding: with(image(inStep(app)), func(f *input.Finding) { f.Standing, f.Reason = input.Due, input.Unpinned }), want: "web-a", asks: true,
		},
		"ImageMoved": {
			reason: "another digest than the one that was reverted is not barred", known: ours,
			inputs:  map[input.ID]record.Delivered{input.Image("web"): {Version: v1, From: "1"}},
			finding: image(due(app, 0)), asks: true,
		},
		"StaysBack":     {reason: "what is on record stays", known: same, inputs: given("1", "web-a"), want: "web-a", keeps: true},
		"NoOrigins":     {reason: "without evidence there is nothing to ask", known: ours, inputs: given("", "")},
		"Unobserved":    {reason: "its controller has not acted yet", workload: unobserved, known: ours, inputs: given("1", ""), waits: true},
		"GoneAtOnce":    {reason: "the same template, after another one, and its controller has not acted yet", workload: unobserved, known: record.Template{Generation: 8, Sum: same.Sum, Number: 1}, inputs: given("1", ""), waits: true, keeps: true},
		"OldCache":      {reason: "the cache does not have our own patch yet", known: record.Template{Generation: 10, Sum: "ours"}, inputs: given("1", ""), keeps: true},
		"OlderProgram":  {reason: "the entry does not say which template it knows", inputs: given("1", "")},
		"Rolled":        {reason: "lockstep roll ends it", workload: moved, known: ours, inputs: given("1", "web-a")},
		"ByThisRollout": {reason: "what the rollout itself gave", known: ours, inputs: given("1", "web-a"), finding: recorded(app, input.DeliveredByRollout), asks: true},
		"RolledAborted": {reason: "the rollout that gave it was aborted", workload: aborted, known: ours, inputs: given("", ""), finding: recorded(app, input.DeliveredByRollout), want: "web-a", asks: true},
		"AnotherSeen":   {reason: "another version is not barred", known: ours, inputs: given("1", ""), finding: due(app, time.Hour), asks: true},
		"KilledAndGone": {reason: "delivered, not recorded, and reverted to the template on record", known: same, finding: recorded(app, input.DeliveredBefore), want: "web-a", asks: true, keeps: true},
		"Patched":       {reason: "our patch is not on record, and its revision tells what came before", workload: patched, known: same, finding: recorded(app, input.DeliveredBefore), waits: true, keeps: true},
		"PausedSince":   {reason: "a pause, and a digest of another program: pods start from the revision on record", workload: paused, known: record.Template{Generation: 8, Sum: "ours", Number: 3, Made: true}, inputs: given("1", ""), asks: true},
		"UndonePaused":  {reason: "an undo during a pause makes an earlier revision the latest", workload: paused, known: record.Template{Generation: 8, Sum: "ours", Number: 2, Made: true}, inputs: given("1", ""), want: "web-a", asks: true},
		"Released":      {reason: "a person accepts it", known: same, inputs: given("1", "web-a"), release: 12, keeps: true},
		"ReleasedFirst": {reason: "an undo brought an earlier release back that was not seen then", workload: rewritten, known: ours, inputs: given("1", ""), release: 12, want: "web-a", asks: true},
		"ReleasedThen":  {reason: "another writer's rollout came after the release of what is on record", workload: rewritten, known: ours, inputs: given("1", "web-a"), release: 12, asks: true},
		"ReleasedOnce":  {reason: "an earlier release is used up", known: same, inputs: given("1", "web-a"), release: 11, want: "web-a", keeps: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := undoneHistory()
			history[1].Shown = input.Shown{app: inStep(app).Shows}.Marks()
			workload, finding := tc.workload, tc.finding
			if workload == nil {
				workload = templated()
			}
			if finding.Reason == "" {
				finding = inStep(app)
			}
			in := Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{finding}}, Entry: record.Entry{Coverage: record.Coverage{Template: tc.known, RolledOutAt: ago(time.Hour)}, Inputs: tc.inputs, Released: 11}}
			in.Intent.Release = tc.release
			asks := needsPast(workload, in)
			if asks {
				in.History.Past = timeline.Past{Asked: true, Revisions: history}
			}
			in = judge(workload, in)
			by, barred := in.Findings[0].BarredFor(input.Undone)
			if barred != (tc.want != "") || by != tc.want || asks != tc.asks || in.History.NotActed != tc.waits {
				t.Errorf("%s: barred by %q (want %q), reads revisions %t (want %t), waits for the controller %t (want %t)",
					tc.reason, by, tc.want, asks, tc.asks, in.History.NotActed, tc.waits)
			}
			want := workload.Template()
			if !workload.Status.Observed || workload.Status.Paused {
				want.Number = workload.Revision + 1
			}
			if !tc.keeps && in.Template.Now != want || tc.keeps && in.Template.Now.Sum != tc.known.Sum {
				t.Errorf("%s: it takes %+v into account, known was %+v and there is %+v", tc.reason, in.Template.Now, tc.known, want)
			}
		})
	}
}

// TestAwaitsNumber: a number that is still to come is looked at when it is there, and the one
// that is about to come is on record until then.
func TestAwaitsNumber(t *testing.T) {
	t.Parallel()
	sum := templated().Template().Sum
	cases := map[string]struct {
		reason           string
		observed, paused bool
		known            record.Template
		want             int64
		awaits           bool
	}{
		"Acted":        {reason: "its controller has acted", observed: true, known: record.Template{Generation: 8, Sum: sum, Number: 3}, want: 3},
		"Scaled":       {reason: "nothing that has a number was written", known: record.Template{Generation: 8, Sum: sum, Number: 3}, want: 3},
		"OurPatch":     {reason: "our patch gets the next one", known: record.Template{Generation: 9, Sum: sum, Number: 4}, want: 4},
		"CameAndWent":  {reason: "another one came and went, and this one gets that number or a higher one", known: record.Template{Generation: 8, Sum: sum, Number: 1}, want: 3, awaits: true},
		"Edited":       {reason: "another one gets the next number", known: record.Template{Generation: 8, Sum: "other", Number: 3}, want: 4},
		"EditedPaused": {reason: "during a pause its controller says that it has acted, and then the number, or none", observed: true, paused: true, known: record.Template{Generation: 8, Sum: "other", Number: 3}, want: 4, awaits: true},
		"ActedPaused":  {reason: "the number that comes then is on record", observed: true, paused: true, known: record.Template{Generation: 9, Sum: sum, Number: 4}, want: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := templated()
			w.Status.Observed, w.Status.Paused = tc.observed, tc.paused
			in := judge(w, Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{inStep(app)}}, Entry: record.Entry{Coverage: record.Coverage{Template: tc.known}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}})
			if got := in.Template.Now.Number; got != tc.want || in.AwaitsStatus != tc.awaits {
				t.Errorf("%s: number %d, awaits %t; want %d and %t", tc.reason, got, in.AwaitsStatus, tc.want, tc.awaits)
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
			for i := range tc.revisions {
				tc.revisions[i].Shown = w.Shown.Marks()
			}
			in := Observation{History: History{Past: timeline.Past{Asked: true, Revisions: tc.revisions}}, Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{finding}}, Entry: record.Entry{
				Coverage: record.Coverage{Template: record.Template{Generation: 8, Sum: "ours"}, Accounted: 3}, Inputs: map[input.ID]record.Delivered{app: {Version: v1}},
			}}
			if got := judge(w, in).Template.From[app]; got != tc.want {
				t.Errorf("%s: given after %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBarsAddUp: a hold on a source that was reverted is a second bar.
func TestBarsAddUp(t *testing.T) {
	t.Parallel()
	in := Observation{Assessment: input.Assessment{Findings: []input.Finding{barred(inStep(app), input.Held, "audit")}}, Template: Template{Reverted: map[input.ID]string{app: "web-a"}}}
	in.bar(templated())
	want := []input.Bar{{Reason: input.Held, By: "audit"}, {Reason: input.Undone, By: "web-a"}}
	if diff := cmp.Diff(want, in.Findings[0].Bars); diff != "" {
		t.Errorf("bars (-want +got)\n%s", diff)
	}
}

// TestRememberOrigins: what a rollout gave is on record with what came before it.
func TestRememberOrigins(t *testing.T) {
	t.Parallel()
	before := record.Entry{Inputs: map[input.ID]record.Delivered{app: {Version: v1, From: "1", RevertedTo: "web-a"}}, Coverage: record.Coverage{Template: record.Template{Generation: 8, Sum: "a"}}}
	patched := kube.RolledOut{At: now, Template: record.Template{Generation: 9, Sum: "b"}}
	cases := map[string]struct {
		reason  string
		outcome outcome
		want    record.Delivered
	}{
		"Moved": {"by our patch", outcome{
			decision: Decision{Verb: RollOut, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)},
			rolledOut: patched, from: "5", template: Template{Now: before.Template},
		}, record.Delivered{Version: v2, Shown: due(app, 0).Shows, From: "5", Was: v1.Short()}},
		"ByRollout": {"by another rollout", outcome{
			decision: Decision{Verb: Remember}, findings: []input.Finding{recorded(app, input.DeliveredByRollout)},
			template: Template{Now: patched.Template, From: map[input.ID]timeline.Origin{app: "4"}},
		}, record.Delivered{Version: v1, From: "4"}},
		"Evicted": {"by no rollout", outcome{
			decision: Decision{Verb: Evict, Delivered: true, Due: []input.Finding{due(app, 0)}}, findings: []input.Finding{due(app, 0)}, template: Template{Now: patched.Template},
		}, record.Delivered{Version: v2}},
		"StaysBack": {"not at all", outcome{
			decision: Decision{Verb: Leave}, findings: []input.Finding{inStep(app)}, template: Template{Now: patched.Template, Reverted: map[input.ID]string{app: "web-c"}},
		}, record.Delivered{Version: v1, From: "1", RevertedTo: "web-c"}},
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

// TestJudgeWithoutNumbers: a DaemonSet's status names no revision, so its revisions are read and
// name the one that delivered an input.
func TestJudgeWithoutNumbers(t *testing.T) {
	t.Parallel()
	w := &kube.Workload{Identity: kube.Identity{Key: web("web"), Kind: kube.DaemonSet(), UID: "4711"}, WorkloadHistory: kube.WorkloadHistory{Replaced: timeline.AfterTime(ago(time.Hour))}}
	w.Status.Observed, w.Target.Generation = true, 9
	known := record.Template{Generation: 8, Sum: "ours"}
	in := Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{recorded(app, input.DeliveredByRollout)}}, Entry: record.Entry{Coverage: record.Coverage{Template: known}}}
	if !needsPast(w, in) {
		t.Fatal("its revisions aren't read")
	}
	in.History.Past = timeline.Past{Asked: true, Revisions: []timeline.Revision{{Name: "web-b", Created: ago(time.Minute), Current: true}}}
	if got, want := judge(w, in).Template.From[app], w.Replaced.By("web-b"); got != want {
		t.Errorf("delivered after %q, want %q", got, want)
	}

	// A patch that is not on record, and that somebody undid: the newest revision that shows it delivered it.
	gone := recorded(app, input.DeliveredBefore)
	shown := input.Shown{app: gone.Shows}.Marks()
	newest := timeline.Revision{Name: "web-d", Created: ago(time.Minute), Shown: shown}
	in = Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{gone}}, Entry: record.Entry{Coverage: record.Coverage{Template: known}}, History: History{Past: timeline.Past{Asked: true, Revisions: []timeline.Revision{
		{Name: "web-c", Created: ago(time.Hour), Shown: shown}, newest, {Name: "web-b", Created: ago(2 * time.Hour), Current: true},
	}}}}
	if got, want := judge(w, in).Template.From[app], newest.Before(); got != want || got == "" {
		t.Errorf("delivered after %q, want %q", got, want)
	}
}

// TestShownByTheRevision: an earlier revision that shows the current version reverts nothing,
// even if the record lists an older mark for it.
func TestShownByTheRevision(t *testing.T) {
	t.Parallel()
	finding := inStep(app)
	history := undoneHistory()
	history[0].Shown = input.Shown{app: finding.Shows}.Marks()
	in := judge(templated(), Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{finding}}, History: History{Past: timeline.Past{Asked: true, Revisions: history}}, Entry: record.Entry{
		Coverage: record.Coverage{Template: record.Template{Generation: 8, Sum: "ours"}},
		Inputs:   map[input.ID]record.Delivered{app: {Version: v1, From: "1", Shown: input.Mark{Digest: "older", Pinned: true}}},
	}})
	if by, barred := in.Findings[0].BarredFor(input.Undone); barred {
		t.Errorf("reverted to %s", by)
	}
}

// TestRevertedIsTheReason: the reason of an input that was reverted says so, unless there is a more important one.
func TestRevertedIsTheReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[input.Reason]input.Reason{
		input.InStep: input.Undone, input.Pinned: input.Undone, input.Accepted: input.Undone, input.Missing: input.Missing, input.Held: input.Held,
	} {
		finding := with(inStep(app), func(f *input.Finding) { f.Reason = reason })
		in := Observation{Assessment: input.Assessment{Findings: []input.Finding{finding}}, Template: Template{Reverted: map[input.ID]string{app: "web-a"}}}
		in.bar(templated())
		if got := in.Findings[0].Reason; got != want {
			t.Errorf("%s becomes %s, want %s", reason, got, want)
		}
	}
}

// TestReleaseAcceptsWhatRuns: a release of a reverted version doesn't roll out what the pods may have loaded before.
func TestReleaseAcceptsWhatRuns(t *testing.T) {
	t.Parallel()
	doubted := with(due(app, time.Minute), func(f *input.Finding) { f.Current = f.Delivered })
	for name, tc := range map[string]struct {
		finding  input.Finding
		released []input.ID
		due      bool
	}{
		"Released": {doubted, []input.ID{app}, false},
		"Another":  {due(app, time.Minute), []input.ID{app}, true},
		"NotBack":  {doubted, []input.ID{db}, true},
	} {
		in := Observation{Assessment: input.Assessment{Findings: []input.Finding{tc.finding}}, Template: Template{Released: tc.released}}
		in.bar(templated())
		e := record.Entry{Inputs: map[input.ID]record.Delivered{app: {Version: v1, Between: true}}}
		got := remember(e, outcome{decision: Decision{Verb: Remember}, findings: in.Findings, template: in.Template}).Inputs[app]
		if isDue := in.Findings[0].Standing == input.Due; isDue != tc.due || got.Between != tc.due {
			t.Errorf("%s: due %t and on record %+v, want %t for both", name, isDue, got, tc.due)
		}
	}
}

// TestReplacedUnseen: if no watch saw the template, others may have come before it, so all earlier revisions count as
// those before.
func TestReplacedUnseen(t *testing.T) {
	t.Parallel()
	at := ago(time.Minute)
	for name, tc := range map[string]struct {
		reason   string
		written  timeline.Bounds
		replaced timeline.Origin
		number   int64
		want     timeline.Origin
	}{
		"Seen":          {"the watch saw what it replaced", timeline.Bounds{Min: 9, Max: 9}, timeline.AfterName("web-a"), 0, timeline.AfterName("web-a")},
		"SeenNumber":    {"by its number", timeline.Bounds{Min: 9, Max: 9}, timeline.AfterNumber(3), 5, timeline.AfterNumber(3)},
		"InAGap":        {"web-a was seen last, and is not the only one before", timeline.Bounds{Min: 5, Max: 9}, timeline.AfterName("web-a"), 0, timeline.AfterTime(at)},
		"InAGapNumber":  {"neither is the third", timeline.Bounds{Min: 5, Max: 9}, timeline.AfterNumber(3), 5, timeline.AfterNumber(4)},
		"InALaterGap":   {"all of them loaded it", timeline.Bounds{Min: 8, Max: 9}, timeline.AfterNumber(3), 5, timeline.AfterNumber(3)},
		"Restarted":     {"nothing was seen", timeline.Bounds{Max: 9}, "", 0, timeline.AfterTime(at)},
		"RestartNumber": {"nothing but the number", timeline.Bounds{Max: 9}, "", 5, timeline.AfterNumber(4)},
	} {
		w := templated()
		w.TemplateWritten, w.Replaced, w.Revision, w.TemplateAt = tc.written, tc.replaced, tc.number, at
		in := Observation{Entry: record.Entry{Coverage: record.Coverage{Template: record.Template{Generation: 1, Sum: "earlier"}}}}
		if got := in.replaced(w, with(recorded(app, input.DeliveredByRollout), func(f *input.Finding) { f.ResourceVersion = "7" })); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
