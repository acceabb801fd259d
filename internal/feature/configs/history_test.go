package configs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
)

func TestAssessAsksForHistoryOnlyWhenItMatters(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	watched, relisted := source(app, "2"), source(app, "2")
	watched.ChangedAt, watched.ContentWritten = at(20), exactly(50)
	relisted.ChangedAt, relisted.ContentWritten = at(20), timeline.Bounds{Min: 45, Max: 50}
	cases := map[string]struct {
		reason string
		source *kube.Source
		given  string
		asked  int
	}{
		"InStep":            {"nothing to find out", source(app, "1"), "1", 0},
		"ChangedWhileAway":  {"did we deliver it before we stopped?", source(app, "2"), "1", 1},
		"ChangedUnwatched":  {"a list told, and when it happened nobody knows", relisted, "1", 1},
		"ChangedBeforeOurs": {"we saw it happen", watched, "1", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &history{}
			assess(t, inputs(clusterOf(tc.source)), reload("auto"), given(map[input.ID]string{app: tc.given}), h)
			if h.asked != tc.asked {
				t.Errorf("%s: the API server was asked %d times, want %d", tc.reason, h.asked, tc.asked)
			}
		})
	}
}

// TestAssessTellsWhatWasGiven: people are told from what to what, also when that is
// only in the template.
func TestAssessTellsWhatWasGiven(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	e := given(map[input.ID]string{app: "1"})
	e.RolledOutAt = at(30)
	w := web()
	w.Shown, w.RolledOutAt = input.Shown{app: input.Tracked(versionOf("2").Short())}, at(31)
	all, err := inputs(clusterOf(source(app, "1"))).Assess(t.Context(), w, reload("auto"), e, (&history{}).ask)
	if err != nil || all.Findings[0].Standing != input.Due || all.Findings[0].Delivered.Short() != versionOf("2").Short() {
		t.Errorf("%+v, %v; want it due, from what the template shows", all.Findings, err)
	}
}

// TestAssessTellsWhatIsNotKnown: where nothing tells what the pods have loaded, nothing is
// said of it, so that a content that goes back does not look as if they had it.
func TestAssessTellsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	absent := clusterOf().Absent(app.Kind, fingerprint.AllKeys())
	cases := map[string]struct {
		reason   string
		onRecord fingerprint.Version
		content  timeline.Bounds
		want     fingerprint.Version
	}{
		"Seen":   {"a watch saw the change after the rollout", versionOf("1"), exactly(50), versionOf("1")},
		"Around": {"a list shows a change from before the rollout or after it", versionOf("1"), timeline.Bounds{Min: 35, Max: 50}, versionOf("2").Unknown()},
		"Waited": {"the pods waited for it, and it has changed since it was made", absent, exactly(50), versionOf("2").Unknown()},
		"InStep": {"it is what was given", versionOf("2"), timeline.Bounds{Min: 35, Max: 50}, versionOf("2")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, e := web(), source(app, "2"), given(nil)
			w.TemplateWritten, s.ContentWritten = exactly(40), tc.content
			e.Inputs[app] = record.Delivered{Version: tc.onRecord}
			all, err := inputs(clusterOf(s)).Assess(t.Context(), w, reload("auto"), e, (&history{}).ask)
			if err != nil || all.Findings[0].Delivered != tc.want {
				t.Errorf("%s: %+v, %v; want it given %s", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

// TestAssessBelievesWhatIsNewerThanTheRecord: the record is of revision 7, moved at 30
// to another version than the one that exists.
func TestAssessBelievesWhatIsNewerThanTheRecord(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	current, before := versionOf("2").Short(), versionOf("1").Short()
	revision := func(created int, number int64, shown string) []timeline.Revision {
		return []timeline.Revision{{Created: at(created), Number: number, Shown: input.Shown{app: input.Tracked(shown)}.Marks()}}
	}
	cases := map[string]struct {
		reason    string
		recorded  string // the template on record shows it
		shown     string // the template shows it now
		movedAt   time.Time
		revisions []timeline.Revision
		want      input.Reason
	}{
		"Newer":    {"we patched and were killed", before, "", time.Time{}, revision(31, 0, current), input.DeliveredBefore},
		"Older":    {"the version was current once before, and is again", before, "", time.Time{}, revision(29, 0, current), input.Changed},
		"Another":  {"a newer revision that shows another version", before, "", time.Time{}, revision(31, 0, "0"), input.Changed},
		"NoneKept": {"history may be gone", before, "", time.Time{}, nil, input.Changed},
		"Again":    {"an old revision was current after ours: we patched and were killed, and it was reverted", before, "", time.Time{}, revision(29, 9, current), input.DeliveredBefore},
		"AgainOld": {"an old revision was current before ours", before, "", time.Time{}, revision(29, 7, current), input.Changed},
		"Ours":     {"the revision that our patch made", before, "", time.Time{}, revision(29, 8, current), input.Changed},
		"Kept":     {"our patch showed it, and somebody's rollout of another version kept that", current, "", time.Time{}, revision(31, 9, current), input.Changed},

		"TemplateWrittenSince": {"we patched and were killed, and the content had been there before", before, current, at(31), revision(29, 9, current), input.DeliveredBefore},
		"TemplateSameSecond":   {"two of our writes may bear the same time", before, current, at(30), revision(29, 9, current), input.DeliveredBefore},
		"TemplateOnRecord":     {"what was followed before this record began is none of its patches", "", current, at(30), revision(29, 0, current), input.Changed},
		"TemplateKeptAndAgain": {"we patched once more to what somebody's rollout had kept", current, current, at(31), revision(29, 9, current), input.DeliveredBefore},
		"TemplateUndoneTo":     {"an undo showed it, and then the content went back as well: the pods have not read it", before, current, time.Time{}, revision(29, 9, current), input.Changed},
		"TemplateAnother":      {"we wrote another version", before, "0", at(31), revision(29, 9, "0"), input.Changed},
		"TemplateAnotherSince": {"two patches are not on record, and the content went back to the first", before, "0", at(32), revision(31, 9, current), input.Changed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := given(map[input.ID]string{app: "1"})
			e.RolledOutAt, e.Accounted = at(30), 8
			e.Inputs[app] = record.Delivered{Version: versionOf("1"), Shown: input.Tracked(tc.recorded)}
			w := web()
			w.Shown, w.RolledOutAt = input.Shown{app: input.Tracked(tc.shown)}, tc.movedAt
			all, err := inputs(clusterOf(source(app, "2"))).Assess(t.Context(), w, reload("auto"), e, (&history{revisions: tc.revisions}).ask)
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

// TestAssessKnowsHowFarTheRecordGoes: a baseline is no patch, and revisions of before
// are none of its deliveries.
func TestAssessKnowsHowFarTheRecordGoes(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	h := &history{revisions: []timeline.Revision{{Created: at(31), Shown: input.Shown{app: input.Tracked(versionOf("2").Short())}.Marks()}}}
	for asOf, want := range map[time.Time]input.Reason{at(30): input.DeliveredBefore, at(31): input.Changed, at(32): input.Changed} {
		e := given(map[input.ID]string{app: "1"})
		e.AsOf = asOf
		if got := assess(t, inputs(clusterOf(source(app, "2"))), reload("auto"), e, h); got[app] != want {
			t.Errorf("a record as of %s, and a revision of %s: %s, want %s", asOf, at(31), got[app], want)
		}
	}
}

// TestAssessOlderPods: a rollout that goes back to a revision whose pods may have run all
// along delivered nothing. One that was aborted did deliver to its canary, and the loop tells
// that the abort took it back; if it were due, Lockstep would roll out and end the abort.
func TestAssessOlderPods(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	for aborted, want := range map[bool]input.Reason{false: input.Changed, true: input.DeliveredByRollout} {
		w := web()
		w.TemplateWritten, w.OlderPods, w.Status.Observed, w.Status.Aborted = exactly(60), true, true, aborted
		changed := source(app, "2")
		changed.ContentWritten, changed.ContentWrittenAt = exactly(50), at(20)
		h := &history{revisions: []timeline.Revision{{Created: at(10), Current: true}}}
		all, err := inputs(clusterOf(changed)).Assess(t.Context(), w, reload("auto"), given(map[input.ID]string{app: "1"}), h.ask)
		if err != nil || all.Findings[0].Reason != want {
			t.Errorf("aborted=%t: %+v, %v; want %s", aborted, all.Findings, err, want)
		}
	}
}

// TestAssessTimesOfEarlierWrites: a template and its source were both changed while the controller was
// down, at 45 by a revision, and the source's managed fields have the time 20.
func TestAssessTimesOfEarlierWrites(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason   string
		onRecord string
		asOf     time.Time
		want     input.Reason
	}{
		"Known":    {"the time is that of the change", "1", at(10), input.DeliveredByRollout},
		"Recorded": {"the record is newer and has another version, so a later write left no time", "1", at(20), input.Changed},
		"Same":     {"the record has this version, and it is not younger than the record", "2", at(20), input.InStep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, e := web(), source(app, "2"), given(map[input.ID]string{app: tc.onRecord})
			w.TemplateWritten, w.Status.Observed, w.Target.Generation = timeline.Bounds{Max: 60}, true, 2
			s.ContentWritten, s.ContentWrittenAt = timeline.Bounds{Max: 50}, at(20)
			e.Template, e.AsOf = record.Template{Generation: 1, Sum: "another"}, tc.asOf
			h := &history{revisions: []timeline.Revision{{Created: at(45), Written: 55, Number: 2, Current: true}}, starts: pods.Starts{Asked: true, Created: at(46), Accepted: at(46), Version: 70}}
			all, err := inputs(clusterOf(s)).Assess(t.Context(), w, reload("auto"), e, h.ask)
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

// TestAssessTemplateBack: the template is the one on record, in a later generation, and the source was written since with
// the content on record. Its pods may have loaded another content with another template in between.
func TestAssessTemplateBack(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason   string
		number   int64 // on record
		template timeline.Bounds
		started  int
		want     input.Reason
		asksPods int
	}{
		"Unseen":    {"nothing shows that there was no other template", 0, upTo(60), 15, input.Changed, 1},
		"Started":   {"its pods have loaded what exists now", 0, upTo(60), 35, input.InStep, 1},
		"Number":    {"its number shows that there was none: it was scaled", 2, upTo(60), 15, input.InStep, 0},
		"Watched":   {"a watch has seen all its templates", 0, exactly(40), 15, input.InStep, 0},
		"TakenOver": {"its pods are of the workload before", 0, upTo(60), 15, input.InStep, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, e := web(), source(app, "1"), given(map[input.ID]string{app: "1"})
			w.TemplateWritten, w.Status.Observed, w.Target.Generation, w.Revision = tc.template, true, 3, 2
			s.ContentWritten, s.ContentWrittenAt = upTo(70), at(30)
			e.Template, e.AsOf = record.Template{Generation: 1, Sum: w.Template().Sum, Number: tc.number}, at(10)
			e.TakenOver = name == "TakenOver"
			h := &history{revisions: []timeline.Revision{{Created: at(5), Written: 55, Number: 2, Earlier: []int64{1}, Current: true}}, starts: pods.Starts{Asked: true, Created: at(tc.started), Accepted: at(tc.started), Started: at(tc.started + 1), Version: 80}}
			all, err := inputs(clusterOf(s)).Assess(t.Context(), w, reload("auto"), e, h.ask)
			if err != nil || all.Findings[0].Reason != tc.want || h.pods != tc.asksPods {
				t.Errorf("%s: %+v after %d questions about pods, %v; want %s after %d", tc.reason, all.Findings, h.pods, err, tc.want, tc.asksPods)
			}
		})
	}
}

// TestAssessLostEntry: a workload whose entry cannot be read is not one that was
// made while nobody watched; it takes a baseline whatever its revisions say.
func TestAssessLostEntry(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	for lost, want := range map[bool]input.Reason{true: input.Baseline, false: input.Changed} {
		w := web()
		w.Created, w.TemplateWritten, w.SettingsWritten = at(6), upTo(60), upTo(60)
		w.Annotations, w.AskedAt = map[string]string{settings.Reload: "auto"}, at(6)
		s := source(app, "2")
		s.ContentWrittenAt = at(9)
		h := &history{revisions: []timeline.Revision{{Created: at(7)}}}
		all, err := inputs(clusterOf(s)).Assess(t.Context(), w, reload("auto"), record.Entry{Unstored: record.Unstored{Lost: lost}}, h.ask)
		if err != nil || all.Findings[0].Reason != want {
			t.Errorf("lost=%t: %+v, %v; want %s", lost, all.Findings, err, want)
		}
	}
}

// situation is what is known of a workload at first sight.
type situation struct {
	workload  *kube.Workload
	namespace *kube.Namespace
	entry     record.Entry
	begun     bool // its kind was followed before
}

// byNamespace moves the wish from the workload to its namespace.
func (s *situation) byNamespace(asked time.Time, written timeline.Bounds) {
	s.workload.Annotations, s.workload.AskedAt = nil, time.Time{}
	s.namespace = &kube.Namespace{Annotations: map[string]string{settings.Reload: "auto"}, AskedAt: asked, SettingsWritten: written}
}

// TestAssessOptingIn: only a workload that was made while nobody watched, and that
// asked to be followed before its source changed, is due at first sight. However
// else one comes to be followed, it takes a baseline.
func TestAssessOptingIn(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason string
		change func(*situation)
		want   input.Reason
	}{
		"MadeWhileAway":   {"asked from its beginning, and then the source changed", func(*situation) {}, input.Changed},
		"AskedNow":        {"the annotation comes before our eyes", func(s *situation) { s.workload.SettingsWritten = exactly(70) }, input.Baseline},
		"AskedWhileAway":  {"the annotation came after the change", func(s *situation) { s.workload.AskedAt = at(12) }, input.Baseline},
		"NobodyCanTell":   {"the managed fields are stripped", func(s *situation) { s.workload.AskedAt = time.Time{} }, input.Baseline},
		"ByFlag":          {"--auto leaves no trace of when it was set", func(s *situation) { s.workload.Annotations = nil }, input.Baseline},
		"ByNamespace":     {"its namespace asked before the change", func(s *situation) { s.byNamespace(at(4), upTo(60)) }, input.Changed},
		"ByNamespaceAway": {"its namespace asked after the change", func(s *situation) { s.byNamespace(at(12), upTo(60)) }, input.Baseline},
		"ByNamespaceNow":  {"its namespace asks now", func(s *situation) { s.byNamespace(at(12), exactly(70)) }, input.Baseline},
		"NewScope":        {"a flag, a label or a permission brings its kind", func(s *situation) { s.begun = false }, input.Baseline},
		"OlderThanScope":  {"it was there before its kind was followed", func(s *situation) { s.workload.Created = at(5) }, input.Baseline},
		"KnownByAnother":  {"it is on record with another source", func(s *situation) { s.entry = given(map[input.ID]string{input.Secret("db"): "1"}) }, input.Baseline},
		"AskedByAnother": {"the annotation is younger than the record, and the content than the annotation", func(s *situation) {
			s.entry = given(map[input.ID]string{input.Secret("db"): "1"})
			s.entry.AsOf = at(5)
		}, input.Changed},
		"MadeBeforeOurEye": {"its beginning was watched", func(s *situation) { s.workload.TemplateWritten = exactly(60) }, input.Baseline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := situation{workload: web(), begun: true}
			s.workload.Created, s.workload.TemplateWritten, s.workload.SettingsWritten = at(6), upTo(60), upTo(60)
			s.workload.Annotations, s.workload.AskedAt = map[string]string{settings.Reload: "auto"}, at(6)
			tc.change(&s)
			changed := source(app, "2")
			changed.ContentWrittenAt = at(9)
			view := clusterOf(changed)
			view.namespace = s.namespace
			h := &history{revisions: []timeline.Revision{{Created: at(7)}}}
			in := configs.New(configs.Options{View: view, Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), s.begun }})
			all, err := in.Assess(t.Context(), s.workload, reload("auto"), s.entry, h.ask)
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

func TestAssessFailsWhenHistoryCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("no answer")
	in := inputs(clusterOf(source(input.ConfigMap("app"), "2")))
	_, err := in.Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{input.ConfigMap("app"): "1"}), (&history{err: broken}).ask)
	if !errors.Is(err, broken) {
		t.Errorf("error %v: what cannot be found out must not be guessed", err)
	}
}

// TestAssessGapOnce: in a gap of the watches, the template was written and the source, which has its earlier content
// again. The pods tell which one they have loaded, and are asked until they say the present one.
func TestAssessGapOnce(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	w, s, e := web(), source(app, "1"), given(map[input.ID]string{app: "1"})
	w.TemplateWritten, w.Status.Observed, w.Target.Generation = timeline.Bounds{Min: 41, Max: 60}, true, 2
	s.ContentWritten, s.Missed, s.ContentWrittenAt = timeline.Bounds{Max: 70}, timeline.Bounds{Min: 41, Max: 70}, at(30)
	e.Template, e.AsOf = record.Template{Generation: 2, Sum: w.Template().Sum}, at(40)
	before := pods.Starts{Asked: true, Created: at(20), Accepted: at(20), Started: at(21), Version: 65}
	after := pods.Starts{Asked: true, Created: at(40), Accepted: at(40), Started: at(41), Version: 75}
	h := &history{revisions: []timeline.Revision{{Created: at(20), Written: 61, Number: 2, Current: true}}}
	all := inputs(clusterOf(s))
	for _, step := range []struct {
		reason string
		starts pods.Starts
		want   input.Reason
		pods   int
	}{
		{"they have loaded another one", before, input.Changed, 1},
		{"they still run it", before, input.Changed, 2},
		{"they were replaced", after, input.InStep, 3},
		{"that is known", before, input.InStep, 3},
	} {
		h.starts = step.starts
		got, err := all.Assess(t.Context(), w, reload("auto"), e, h.ask)
		if err != nil || got.Findings[0].Reason != step.want || h.pods != step.pods {
			t.Errorf("%s: %+v after %d questions about pods, %v; want %s after %d", step.reason, got.Findings, h.pods, err, step.want, step.pods)
		}
	}
	all.Drop(w.Key)
	if got, err := all.Assess(t.Context(), w, reload("auto"), e, h.ask); err != nil || got.Findings[0].Reason != input.Changed {
		t.Errorf("the next workload of that name is asked anew: %+v, %v", got.Findings, err)
	}
}

// TestAssessGapOfARevert: a revert on record hides what pods loaded in a gap of the watches, and a release accepts it.
// Those of a later template are another matter.
func TestAssessGapOfARevert(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	w, s := web(), source(app, "1")
	w.TemplateWritten, w.Status.Observed, w.Target.Generation = timeline.Bounds{Min: 41, Max: 60}, true, 2
	s.ContentWritten, s.Missed, s.ContentWrittenAt = timeline.Bounds{Max: 70}, timeline.Bounds{Min: 41, Max: 70}, at(30)
	for sum, want := range map[string]input.Reason{w.Template().Sum: input.InStep, "earlier": input.Changed} {
		e := given(map[input.ID]string{app: "1"})
		e.Template, e.AsOf = record.Template{Generation: 1, Sum: sum}, at(20)
		all, h := inputs(clusterOf(s)), &history{starts: pods.Starts{Asked: true, Unknown: true}}
		for _, to := range []string{"web-a", ""} { // released
			g := e.Inputs[app]
			g.RevertedTo = to
			e.Inputs[app] = g
			got, err := all.Assess(t.Context(), w, reload("auto"), e, h.ask)
			if err != nil || to == "" && got.Findings[0].Reason != want {
				t.Errorf("after %s: %+v, %v; want %s", sum, got.Findings, err, want)
			}
		}
	}
}
