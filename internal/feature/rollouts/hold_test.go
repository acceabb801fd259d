package rollouts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// TestUndoKeepsHold: a hold whose annotation is gone counts when an undo took it, and until
// a release. Whoever else removes it ends it.
func TestUndoKeepsHold(t *testing.T) {
	t.Parallel()
	seen, undone := record.Hold{On: true, By: "incident 42"}, record.Hold{On: true, By: "incident 42", Undone: true}
	there := templated().Template()
	before := record.Template{Generation: 8, Sum: "before"}
	unobserved, rolled, aborted := templated(), templated(), templated()
	unobserved.Status.Observed = false
	rolled.RolledOutAt = now
	aborted.Status.Aborted, aborted.Status.StableHash = true, "web-a"
	made := []timeline.Revision{{Name: "web-a", Number: 1}, {Name: "web-b", Number: 2, Current: true}}
	cases := map[string]struct {
		reason    string
		onRecord  record.Hold
		template  record.Template // on record
		workload  *kube.Workload
		revisions []timeline.Revision
		refused   error
		held      string // the annotation
		release   int64
		want      record.Hold // on record afterwards
		asks      bool
		waits     bool
	}{
		"Undone":        {reason: "the workload went back to an earlier revision", onRecord: seen, template: before, want: undone, asks: true},
		"Removed":       {reason: "only the annotation is gone: a person or a tool removed it", onRecord: seen, template: there},
		"Scaled":        {reason: "it was removed and the workload scaled", onRecord: seen, template: record.Template{Generation: 8, Sum: there.Sum}},
		"NewTemplate":   {reason: "a tool that removes it with a new template ends it", onRecord: seen, template: before, revisions: made, asks: true},
		"StillThere":    {reason: "the undo left the annotation", onRecord: seen, template: before, held: "incident 42", want: seen},
		"Anew":          {reason: "a person holds it again", onRecord: undone, template: there, held: "incident 43", want: record.Hold{On: true, By: "incident 43"}},
		"AnewRemoved":   {reason: "and removes that", onRecord: record.Hold{On: true, By: "incident 43"}, template: there},
		"Stays":         {reason: "it stays on record", onRecord: undone, template: there, want: undone},
		"StaysRolled":   {reason: "another rollout does not end it", onRecord: undone, template: before, revisions: made, want: undone},
		"Released":      {reason: "a release ends it", onRecord: undone, template: there, release: 12},
		"ReleasedOnce":  {reason: "the undo brought an earlier release back", onRecord: undone, template: there, release: 11, want: undone},
		"ReleasedFirst": {reason: "a release after an undo that is seen only now", onRecord: seen, template: before, release: 12, asks: true},
		"Unobserved":    {reason: "its controller has not acted yet", onRecord: seen, template: before, workload: unobserved, waits: true},
		"ByRoll":        {reason: "a person removed it, and a patch of ours used an earlier revision", onRecord: seen, template: before, workload: rolled},
		"Aborted":       {reason: "an abort removes no annotation", onRecord: seen, template: there, workload: aborted},
		"NoRight":       {reason: "nobody knows whether it was an undo", onRecord: seen, template: before, refused: errors.New("forbidden"), asks: true},
		"OlderProgram":  {reason: "the template on record is not known", onRecord: seen},
		"None":          {reason: "there was none", template: before},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, history := tc.workload, tc.revisions
			if w == nil {
				w = templated()
			}
			if history == nil {
				history = undoneHistory()
			}
			in := Observation{Intent: auto(), Assessment: input.Assessment{Findings: []input.Finding{inStep(app)}}, Entry: record.Entry{
				Coverage: record.Coverage{Template: tc.template, RolledOutAt: ago(time.Hour)}, Hold: tc.onRecord, Released: 11, Inputs: map[input.ID]record.Delivered{app: {Version: v1}},
			}}
			in.Intent.Release, in.Intent.Held, in.Intent.HeldBy = tc.release, tc.held != "", tc.held
			asks := needsPast(w, in)
			if asks {
				in.History.Past = timeline.Past{Asked: true, Revisions: history, Refused: tc.refused}
			}
			in = judge(w, in)
			if diff := cmp.Diff(tc.want, in.holdOnRecord()); diff != "" || asks != tc.asks || in.History.NotActed != tc.waits {
				t.Errorf("%s: reads revisions %t (want %t), waits for the controller %t (want %t), on record (-want +got)\n%s",
					tc.reason, asks, tc.asks, in.History.NotActed, tc.waits, diff)
			}
			if again := in.Recheck == permissionCheck; again != (tc.refused != nil) {
				t.Errorf("%s: the next look is in %s", tc.reason, in.Recheck)
			}
		})
	}
}

// TestHoldOnRecord: a hold is on record before any undo, as long as it is there, and its text
// takes no more room than a message shows.
func TestHoldOnRecord(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.findings = []input.Finding{inStep(app)}
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	loop := s.loop()
	look := func(want record.Hold) {
		t.Helper()
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.entry.Hold); diff != "" {
			t.Errorf("on record (-want +got)\n%s", diff)
		}
	}
	s.workload.Annotations[settings.Hold] = ""
	look(record.Hold{On: true})
	long := string(make([]byte, 1<<10))
	s.workload.Annotations[settings.Hold] = long
	look(record.NewHold(settings.Shorten(long)))
	s.recorded = 0
	look(record.NewHold(settings.Shorten(long)))
	if s.recorded != 0 {
		t.Error("the same hold is written again")
	}
	delete(s.workload.Annotations, settings.Hold)
	look(record.Hold{})
}

// TestHoldBesideAMistake: a hold that is set or removed while another setting isn't understood
// is on record as it would be without the mistake, so a later undo neither ends it nor brings it
// back.
func TestHoldBesideAMistake(t *testing.T) {
	t.Parallel()
	on, undone := record.Hold{On: true, By: "freeze"}, record.Hold{On: true, By: "freeze", Undone: true}
	made := timeline.Past{Asked: true, Revisions: []timeline.Revision{{Name: "web-a", Number: 2}, {Name: "web-b", Number: 3, Current: true}}}
	cases := map[string]struct {
		reason   string
		onRecord record.Hold
		held     bool           // by the annotation
		replaced bool           // another template than on record
		unacted  bool           // the workload's controller has not acted on it
		past     *timeline.Past // of an undo, unless given
		want     record.Hold
	}{
		"Set":       {reason: "an undo may remove its annotation", held: true, want: on},
		"Removed":   {reason: "a later undo wasn't what removed it", onRecord: on},
		"Lost":      {reason: "it is judged when the revision exists", onRecord: on, replaced: true, unacted: true, want: on},
		"LostTo":    {reason: "an undo removed it", onRecord: on, replaced: true, want: undone},
		"Ended":     {reason: "a deploy removed it, and a later undo to that revision doesn't bring it back", onRecord: on, replaced: true, past: &made},
		"NotListed": {reason: "nothing shows an undo", onRecord: on, replaced: true, past: &timeline.Past{Asked: true, Refused: errors.New("forbidden")}},
		"Behind":    {reason: "the status is about the template before", onRecord: on, replaced: true, past: &timeline.Past{Asked: true, NotActed: true}, unacted: true, want: on},
		"Undone":    {reason: "it counts until a release", onRecord: undone, want: undone},
		"Rolled":    {reason: "another rollout doesn't end it", onRecord: undone, replaced: true, past: &made, want: undone},
		"Anew":      {reason: "a new one replaces it", onRecord: undone, held: true, want: on},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.workload = templated()
			s.workload.Status.Observed = !tc.unacted || tc.past != nil
			s.workload.Annotations = map[string]string{settings.Reload: "auto", settings.Quiet: "soon"}
			s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Hold: tc.onRecord, Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
			s.entry.Template = s.workload.Template()
			if tc.replaced {
				s.entry.Template = record.Template{Generation: 8, Sum: "before"}
			}
			if tc.held {
				s.workload.Annotations[settings.Hold] = "freeze"
			}
			past, dependencies := timeline.Past{Asked: true, Revisions: undoneHistory()}, s.dependencies()
			if tc.past != nil {
				past = *tc.past
			}
			dependencies.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) { return past, nil }
			if _, err := New(DefaultOptions(), dependencies).Reconcile(t.Context(), web("web")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.entry.Hold); diff != "" || s.entry.Decision.Reason != input.InvalidAnnotation {
				t.Errorf("%s: decided %s, on record (-want +got)\n%s", tc.reason, s.entry.Decision.Reason, diff)
			}
			if awaited := s.awaited > 0; awaited != tc.unacted {
				t.Errorf("%s: waits for the workload's status: %t", tc.reason, awaited)
			}
		})
	}
}
