package configs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
	"github.com/lockstep-dev/lockstep/internal/feature/configs"
)

// cluster is a View of given sources.
type cluster struct {
	sources    map[input.ID]*kube.Source
	unreadable input.Kind
	namespace  *kube.Namespace
}

func (c cluster) Source(_ string, id input.ID) (*kube.Source, bool) {
	s, ok := c.sources[id]
	return s, ok
}

func (c cluster) SourcesMatching(_ string, match func(input.ID) bool) []input.ID {
	var found []input.ID
	for id := range c.sources {
		if match(id) {
			found = append(found, id)
		}
	}
	return found
}

func (c cluster) Namespace(string) (*kube.Namespace, bool) { return c.namespace, c.namespace != nil }

func (c cluster) Knows(kind input.Kind, _ string) bool { return kind != c.unreadable }

func (c cluster) Absent(_ input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return fingerprint.Hasher{}.AbsentVersion(keys)
}

// source is a ConfigMap or Secret whose one key has the value. It came with a list.
func source(id input.ID, value string) *kube.Source {
	return &kube.Source{ID: id, Namespace: "shop", Content: contentOf(value), ContentWritten: upTo(50), SeenAt: at(10), Created: at(1)}
}

func contentOf(value string) fingerprint.Content {
	return fingerprint.Hasher{}.Content(map[string]string{"key": value}, nil)
}

func versionOf(value string) fingerprint.Version {
	return contentOf(value).Version(fingerprint.AllKeys())
}

func clusterOf(sources ...*kube.Source) cluster {
	c := cluster{sources: map[input.ID]*kube.Source{}}
	for _, s := range sources {
		c.sources[s.ID] = s
	}
	return c
}

// web references the ConfigMap "app" in full.
func web() *kube.Workload {
	return &kube.Workload{
		Key: kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"},
		UID: "4711", Created: at(0), TemplateWritten: exactly(40), SettingsWritten: exactly(40),
		Refs: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: fingerprint.AllKeys()}},
	}
}

func given(values map[input.ID]string) record.Entry {
	e := record.Entry{Inputs: map[input.ID]record.Given{}}
	for id, value := range values {
		e.Inputs[id] = record.Given{Version: versionOf(value)}
	}
	return e
}

// history counts the questions to the API server.
type history struct {
	revisions []timeline.Revision
	err       error
	asked     int
}

func (h *history) ask(context.Context, *kube.Workload) ([]timeline.Revision, error) {
	h.asked++
	return h.revisions, h.err
}

func inputs(view configs.View, h *history) *configs.Inputs {
	return configs.New(configs.Options{View: view, Revisions: h.ask, Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), true }})
}

func reload(value string) settings.Intent {
	return settings.ForWorkload(map[string]string{settings.Reload: value}, nil, settings.Defaults{Quiet: 5 * time.Second})
}

func assess(t *testing.T, in *configs.Inputs, intent settings.Intent, e record.Entry) map[input.ID]input.Reason {
	t.Helper()
	all, err := in.Assess(t.Context(), web(), intent, e)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[input.ID]input.Reason{}
	for _, f := range all.Findings {
		reasons[f.ID] = f.Reason
	}
	return reasons
}

func TestAssessFollowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	app, extra, db := input.ConfigMap("app"), input.ConfigMap("extra"), input.Secret("db")
	refusing := source(app, "1")
	refusing.Annotations = map[string]string{settings.Reload: "never"}
	asking := source(app, "2")
	asking.Annotations = map[string]string{settings.Reload: "auto"}
	unread := clusterOf()
	unread.unreadable = input.KindConfigMap
	cases := map[string]struct {
		reason string
		view   cluster
		reload string
		given  map[input.ID]string
		want   map[input.ID]input.Reason
	}{
		"Auto":         {"the referenced sources", clusterOf(source(app, "1"), source(extra, "1")), "auto", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{app: input.InStep}},
		"Listed":       {"a listed source needs no reference", clusterOf(source(app, "1"), source(extra, "1")), "configmap/extra", map[input.ID]string{extra: "1"}, map[input.ID]input.Reason{extra: input.InStep}},
		"ListedTwice":  {"a listed and referenced source is one input", clusterOf(source(app, "1")), "auto,configmap/app,configmap/a*", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{app: input.InStep}},
		"ListedAbsent": {"a listed source that does not exist is known to be missing", clusterOf(), "secret/db", nil, map[input.ID]input.Reason{db: input.Missing}},
		"Glob":         {"a pattern follows what matches now", clusterOf(source(extra, "1"), source(db, "1")), "configmap/e*", map[input.ID]string{extra: "1"}, map[input.ID]input.Reason{extra: input.InStep}},
		"GlobGone":     {"and what matched before, so that its return is noticed", clusterOf(), "configmap/e*", map[input.ID]string{extra: "1"}, map[input.ID]input.Reason{extra: input.Missing}},
		"Never":        {"nothing", clusterOf(source(app, "1")), "never", nil, map[input.ID]input.Reason{}},
		"Asking":       {"a source that asks for its users", clusterOf(asking), "configmap/none", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{app: input.Changed, input.ConfigMap("none"): input.Missing}},
		"AskingGone":   {"and is gone: its return is noticed", clusterOf(), "configmap/none", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{app: input.Missing, input.ConfigMap("none"): input.Missing}},
		"AskingUnread": {"or cannot be seen now", unread, "configmap/none", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{app: input.Unreadable, input.ConfigMap("none"): input.Unreadable}},
		"NeverGone":    {"who refuses does not want to know", clusterOf(), "never", map[input.ID]string{app: "1"}, map[input.ID]input.Reason{}},
		"SourceNever":  {"a source that refuses is not followed", clusterOf(refusing), "auto", nil, map[input.ID]input.Reason{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := assess(t, inputs(tc.view, &history{}), reload(tc.reload), given(tc.given))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAssessUnreadable: without the right to list Secrets a Secret that is not
// found may well exist, so it must not be taken for deleted.
func TestAssessUnreadable(t *testing.T) {
	t.Parallel()
	view := clusterOf(source(input.ConfigMap("app"), "1"))
	view.unreadable = input.KindSecret
	got := assess(t, inputs(view, &history{}), reload("auto,secret/db"), given(map[input.ID]string{input.ConfigMap("app"): "1", input.Secret("db"): "1"}))
	want := map[input.ID]input.Reason{input.ConfigMap("app"): input.InStep, input.Secret("db"): input.Unreadable}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

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
			in := inputs(clusterOf(tc.source), h)
			for range 3 { // a quiet window looks again and again
				assess(t, in, reload("auto"), given(map[input.ID]string{app: tc.given}))
			}
			if h.asked != tc.asked {
				t.Errorf("%s: the API server was asked %d times, want %d", tc.reason, h.asked, tc.asked)
			}
		})
	}
}

// TestAssessForgetsWorkloadsThatAreGone: what was asked about one that is gone, or
// about another of its name, says nothing.
func TestAssessForgetsWorkloadsThatAreGone(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	h := &history{}
	in := inputs(clusterOf(source(app, "2")), h)
	entry := given(map[input.ID]string{app: "1"})
	assess(t, in, reload("auto"), entry)
	in.Drop(web().Key)
	assess(t, in, reload("auto"), entry)
	if h.asked != 2 {
		t.Errorf("the API server was asked %d times about a workload that had gone, want 2", h.asked)
	}
	namesake := web()
	namesake.UID = "another"
	if _, err := in.Assess(t.Context(), namesake, reload("auto"), entry); err != nil || h.asked != 3 {
		t.Errorf("the API server was asked %d times, error %v; want once more for the namesake", h.asked, err)
	}
}

// TestAssessOptingInByTheSource: a source that begins to ask for its users restarts
// none of them for what was before; what is made before our eyes is news to all.
func TestAssessOptingInByTheSource(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason  string
		content timeline.Bounds
		asks    timeline.Bounds
		want    input.Reason
	}{
		"AskedLater": {"the content is older than the wish", exactly(50), exactly(60), input.Baseline},
		"AskedFirst": {"the content changed after the wish", exactly(70), exactly(60), input.Changed},
		"AskedSince": {"it has asked for as long as we know it", exactly(50), timeline.Bounds{}, input.Changed},
		"InDoubt":    {"a list shows both", timeline.Bounds{Min: 45, Max: 60}, timeline.Bounds{Min: 45, Max: 60}, input.Baseline},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(app, "2")
			s.Annotations = map[string]string{settings.Reload: "auto"}
			s.ContentWritten, s.AskWritten = tc.content, tc.asks
			got := assess(t, inputs(clusterOf(s), &history{}), reload("configmap/none"), record.Entry{})
			if got[app] != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got[app], tc.want)
			}
		})
	}
}

// TestAssessKindThatIsFollowedNow: a permission, a flag or a label brings workloads
// that ran before. They are followed from their list on, whatever their own resource
// version is; a workload that was made since is followed from its beginning.
func TestAssessKindThatIsFollowedNow(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	cases := map[string]struct {
		reason  string
		content timeline.Bounds
		created time.Time
		begun   bool
		want    input.Reason
	}{
		"ChangedBefore":   {"before its kind was followed", exactly(100), at(2), true, input.Baseline},
		"ChangedSince":    {"after that, and we look only now", exactly(120), at(2), true, input.Changed},
		"NotBegun":        {"that its kind is followed is not even on record", exactly(100), at(6), false, input.Baseline},
		"MadeInTheOutage": {"it came with a later list", exactly(100), at(6), true, input.Changed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(app, "2")
			s.ContentWritten = tc.content
			w := web()
			w.Created, w.TemplateWritten, w.SettingsWritten, w.Listed = tc.created, upTo(90), upTo(90), upTo(110)
			in := configs.New(configs.Options{
				View: clusterOf(s), Revisions: (&history{}).ask,
				Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), tc.begun },
			})
			all, err := in.Assess(t.Context(), w, reload("auto"), record.Entry{})
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
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
	e.MovedAt = at(30)
	w := web()
	w.Shown, w.MovedAt = input.Shown{app: input.Tracked(versionOf("2").Short())}, at(31)
	all, err := inputs(clusterOf(source(app, "1")), &history{}).Assess(t.Context(), w, reload("auto"), e)
	if err != nil || all.Findings[0].Standing != input.Due || all.Findings[0].Given.Short() != versionOf("2").Short() {
		t.Errorf("%+v, %v; want it due, from what the template shows", all.Findings, err)
	}
}

// TestAssessBelievesWhatIsNewerThanTheRecord: the record is of revision 7, moved at 30
// to another version than the one that exists.
func TestAssessBelievesWhatIsNewerThanTheRecord(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	current, before := versionOf("2").Short(), versionOf("1").Short()
	revision := func(created int, number int64, shown string) []timeline.Revision {
		return []timeline.Revision{{Created: at(created), Number: number, Shown: input.Shown{app: input.Tracked(shown)}}}
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
		"Again":    {"an old revision was current after ours: we patched and were killed, and it was taken back", before, "", time.Time{}, revision(29, 9, current), input.DeliveredBefore},
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
			e.MovedAt, e.MovedFrom = at(30), 7
			e.Inputs[app] = record.Given{Version: versionOf("1"), Shown: input.Tracked(tc.recorded)}
			w := web()
			w.Shown, w.MovedAt = input.Shown{app: input.Tracked(tc.shown)}, tc.movedAt
			all, err := inputs(clusterOf(source(app, "2")), &history{revisions: tc.revisions}).Assess(t.Context(), w, reload("auto"), e)
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
	h := &history{revisions: []timeline.Revision{{Created: at(31), Shown: input.Shown{app: input.Tracked(versionOf("2").Short())}}}}
	for asOf, want := range map[time.Time]input.Reason{at(30): input.DeliveredBefore, at(31): input.Changed, at(32): input.Changed} {
		e := given(map[input.ID]string{app: "1"})
		e.AsOf = asOf
		if got := assess(t, inputs(clusterOf(source(app, "2")), h), reload("auto"), e); got[app] != want {
			t.Errorf("a record as of %s, and a revision of %s: %s, want %s", asOf, at(31), got[app], want)
		}
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
		s.DataWrittenAt = at(9)
		h := &history{revisions: []timeline.Revision{{Created: at(7)}}}
		all, err := inputs(clusterOf(s), h).Assess(t.Context(), w, reload("auto"), record.Entry{Lost: lost})
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
		"MadeWhileAway":    {"asked from its beginning, and then the source changed", func(*situation) {}, input.Changed},
		"AskedNow":         {"the annotation comes before our eyes", func(s *situation) { s.workload.SettingsWritten = exactly(70) }, input.Baseline},
		"AskedWhileAway":   {"the annotation came after the change", func(s *situation) { s.workload.AskedAt = at(12) }, input.Baseline},
		"NobodyCanTell":    {"the managed fields are stripped", func(s *situation) { s.workload.AskedAt = time.Time{} }, input.Baseline},
		"ByFlag":           {"--auto leaves no trace of when it was set", func(s *situation) { s.workload.Annotations = nil }, input.Baseline},
		"ByNamespace":      {"its namespace asked before the change", func(s *situation) { s.byNamespace(at(4), upTo(60)) }, input.Changed},
		"ByNamespaceAway":  {"its namespace asked after the change", func(s *situation) { s.byNamespace(at(12), upTo(60)) }, input.Baseline},
		"ByNamespaceNow":   {"its namespace asks now", func(s *situation) { s.byNamespace(at(12), exactly(70)) }, input.Baseline},
		"NewScope":         {"a flag, a label or a permission brings its kind", func(s *situation) { s.begun = false }, input.Baseline},
		"OlderThanScope":   {"it was there before its kind was followed", func(s *situation) { s.workload.Created = at(5) }, input.Baseline},
		"KnownByAnother":   {"it is on record with another source", func(s *situation) { s.entry = given(map[input.ID]string{input.Secret("db"): "1"}) }, input.Baseline},
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
			changed.DataWrittenAt = at(9)
			view := clusterOf(changed)
			view.namespace = s.namespace
			h := &history{revisions: []timeline.Revision{{Created: at(7)}}}
			in := configs.New(configs.Options{View: view, Revisions: h.ask, Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), s.begun }})
			all, err := in.Assess(t.Context(), s.workload, reload("auto"), s.entry)
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

func TestAssessFailsWhenHistoryCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("no answer")
	in := inputs(clusterOf(source(input.ConfigMap("app"), "2")), &history{err: broken})
	_, err := in.Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{input.ConfigMap("app"): "1"}))
	if !errors.Is(err, broken) {
		t.Errorf("error %v: what cannot be found out must not be guessed", err)
	}
}

// TestAssessClampsTheTimeOfAnUnseenChange: the API server's times shorten the
// quiet window and do nothing else.
func TestAssessClampsTheTimeOfAnUnseenChange(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		changed, data time.Time
		want          time.Time
	}{
		"Watched":    {"our own watch is believed", at(12), at(3), at(12)},
		"Recent":     {"a change shortly before our start", time.Time{}, at(7), at(7)},
		"LongAgo":    {"a change long before it is quiet already", time.Time{}, at(1), at(5)},
		"NoTimes":    {"stripped managed fields mean now", time.Time{}, time.Time{}, at(10)},
		"FromFuture": {"a clock that is off means now", time.Time{}, at(50), at(10)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(input.ConfigMap("app"), "2")
			s.ChangedAt, s.DataWrittenAt = tc.changed, tc.data
			all, err := inputs(clusterOf(s), &history{}).Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{s.ID: "1"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := all.Findings[0].ChangedAt; !got.Equal(tc.want) {
				t.Errorf("%s: changed at %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAssessBarsHeldSources(t *testing.T) {
	t.Parallel()
	s := source(input.ConfigMap("app"), "2")
	s.Annotations = map[string]string{settings.Hold: "audit"}
	all, err := inputs(clusterOf(s), &history{}).Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{s.ID: "1"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []input.Bar{{Reason: input.Held, By: "audit"}}
	if f := all.Findings[0]; f.Standing != input.Due || !slices.Equal(f.Bars, want) {
		t.Errorf("finding %+v, want it due and barred by the hold", f)
	}
}

// TestAssessTellsHowFarARefreshReaches: only what the kubelet mounts, and mounts as a
// whole, can be refreshed.
func TestAssessTellsHowFarARefreshReaches(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		ref    podrefs.Ref
		want   input.Extent
	}{
		"Mounted":   {"the kubelet writes it again", podrefs.Ref{Volume: true}, input.Everything},
		"Env":       {"a process has its environment from its start", podrefs.Ref{Env: true}, input.Nothing},
		"Both":      {"one way is refreshed and the other is not", podrefs.Ref{Volume: true, Env: true}, input.Some},
		"SubPath":   {"the kubelet mounts it once", podrefs.Ref{Volume: true, SubPath: true}, input.Some},
		"OnlyNamed": {"no volume has it", podrefs.Ref{}, input.Nothing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source(input.ConfigMap("app"), "1")
			w := web()
			tc.ref.Source, tc.ref.Keys = s.ID, fingerprint.AllKeys()
			w.Refs = []podrefs.Ref{tc.ref}
			all, err := inputs(clusterOf(s), &history{}).Assess(t.Context(), w, reload("auto"), record.Entry{})
			if err != nil || all.Findings[0].Refresh != tc.want || !all.Findings[0].Live {
				t.Errorf("%s: %+v, %v; want %d", tc.reason, all.Findings, err, tc.want)
			}
		})
	}
}

// TestAssessWarns: what is probably a mistake, and no reason to stop.
func TestAssessWarns(t *testing.T) {
	t.Parallel()
	odd := source(input.ConfigMap("app"), "1")
	odd.Annotations = map[string]string{settings.Reload: "yes"}
	all, err := inputs(clusterOf(odd), &history{}).Assess(t.Context(), web(), reload("auto, secret/none"), record.Entry{})
	if err != nil {
		t.Fatal(err)
	}
	want := []input.Warning{
		{Reason: input.InvalidAnnotation, Text: `configmap/app: annotation lockstep.dev/reload: "yes" is not understood; accepted: auto or never; it has no effect`},
		{Reason: input.SourceUnknown, Text: "the annotation names secret/none, which does not exist"},
	}
	if diff := cmp.Diff(want, all.Warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}
