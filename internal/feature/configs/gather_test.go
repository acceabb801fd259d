package configs_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
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

func (c cluster) SourcesMatching(_ string, p settings.Pattern) iter.Seq[input.ID] {
	return func(yield func(input.ID) bool) {
		for id := range c.sources {
			if p.Matches(id) && !yield(id) {
				return
			}
		}
	}
}

func (c cluster) Namespace(string) (*kube.Namespace, bool) { return c.namespace, c.namespace != nil }

func (c cluster) Knows(kind input.Kind, _ string) bool { return kind != c.unreadable }

func (c cluster) Absent(_ input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return fingerprint.Hasher{}.AbsentVersion(keys)
}

// source is a ConfigMap or Secret whose one key has the value. It came with a list.
func source(id input.ID, value string) *kube.Source {
	return &kube.Source{ID: id, Namespace: "shop", Content: contentOf(value), SourceHistory: kube.SourceHistory{ContentWritten: upTo(50), SeenAt: at(10)}, Created: at(1)}
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
		Identity: kube.Identity{
			Key: kube.Key{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"},
			UID: "4711", Created: at(0),
		},
		WorkloadHistory: kube.WorkloadHistory{TemplateWritten: exactly(40), SettingsWritten: exactly(40)},
		PodTemplate:     kube.PodTemplate{Refs: []podrefs.Ref{{Source: input.ConfigMap("app"), Keys: fingerprint.AllKeys()}}},
	}
}

func given(values map[input.ID]string) record.Entry {
	e := record.Entry{Inputs: map[input.ID]record.Delivered{}}
	for id, value := range values {
		e.Inputs[id] = record.Delivered{Version: versionOf(value)}
	}
	return e
}

// history counts the questions about the workload's past.
type history struct {
	revisions []timeline.Revision
	starts    pods.Starts
	err       error
	asked     int
	// pods counts those that concern pods.
	pods int
}

func (h *history) ask(_ context.Context, from timeline.Evidence) (timeline.Past, error) {
	h.asked++
	past := timeline.Past{Asked: true, Revisions: h.revisions}
	if from == timeline.FromPods {
		h.pods++
		past.Starts = h.starts
	}
	return past, h.err
}

func inputs(view configs.View) *configs.Inputs {
	return configs.New(configs.Options{View: view, Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), true }})
}

func reload(value string) settings.Intent {
	return settings.ForWorkload(map[string]string{settings.Reload: value}, nil, settings.Defaults{Quiet: 5 * time.Second})
}

func assess(t *testing.T, in *configs.Inputs, intent settings.Intent, e record.Entry, h *history) map[input.ID]input.Reason {
	t.Helper()
	all, err := in.Assess(t.Context(), web(), intent, e, h.ask)
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
			got := assess(t, inputs(tc.view), reload(tc.reload), given(tc.given), &history{})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAssessUnreadable: without the permission to list Secrets a Secret that is not
// found may well exist, so it must not be taken for deleted.
func TestAssessUnreadable(t *testing.T) {
	t.Parallel()
	view := clusterOf(source(input.ConfigMap("app"), "1"))
	view.unreadable = input.KindSecret
	got := assess(t, inputs(view), reload("auto,secret/db"), given(map[input.ID]string{input.ConfigMap("app"): "1", input.Secret("db"): "1"}), &history{})
	want := map[input.ID]input.Reason{input.ConfigMap("app"): input.InStep, input.Secret("db"): input.Unreadable}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAssessReadableLater: another writer's rollout began to use a Secret that can't be read. By the time it can be,
// nothing shows which content that rollout has loaded. Which kinds are followed for the first time is no reason to
// roll out.
func TestAssessReadableLater(t *testing.T) {
	t.Parallel()
	app, db := input.ConfigMap("app"), input.Secret("db")
	cases := map[string]struct {
		reason string
		begun  bool
		sum    string // of the template on record
		known  map[input.ID]string
		want   input.Reason
	}{
		"Rolled":   {"its pods may run an earlier content", true, "another", map[input.ID]string{app: "1"}, input.Changed},
		"Same":     {"its pods started before the record, and Lockstep begins to follow the Secret", true, web().Template().Sum, map[input.ID]string{app: "1"}, input.Baseline},
		"NotBegun": {"no process has followed Secrets before", false, "another", map[input.ID]string{app: "1"}, input.Baseline},
		"New":      {"the workload isn't on record", true, "another", nil, input.Baseline},
		"OnRecord": {"the version on record tells", true, "another", map[input.ID]string{app: "1", db: "2"}, input.InStep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, e := web(), source(db, "2"), given(tc.known)
			w.Refs = append(w.Refs, podrefs.Ref{Source: db, Keys: fingerprint.AllKeys()})
			w.TemplateWritten, w.SettingsWritten, w.Status.Observed, w.Target.Generation = upTo(60), upTo(30), true, 2
			s.ContentWritten = upTo(70)
			e.Template = record.Template{Generation: 1, Sum: tc.sum}
			view := clusterOf(source(app, "1"), s)
			view.unreadable = input.KindSecret
			options := configs.Options{View: view, Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), tc.begun }}
			find := func() input.Finding {
				all, err := configs.New(options).Assess(t.Context(), w, reload("auto"), e, (&history{}).ask)
				if err != nil || len(all.Findings) != 2 {
					t.Fatalf("%d findings, %v", len(all.Findings), err)
				}
				return all.Findings[1]
			}
			if f := find(); f.Standing == input.Record {
				e.Inputs[db] = record.Delivered{Version: f.Current}
			}
			e.Template = record.Template{Generation: 2, Sum: w.Template().Sum}
			view.unreadable = ""
			options.View = view
			if f := find(); f.Reason != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, f.Reason, tc.want)
			}
		})
	}
}

// TestAssessGrownKeys: a source that got too many keys while no process ran has changed, and so has
// one that has fewer again. A workload that uses some of them is rolled out.
func TestAssessGrownKeys(t *testing.T) {
	t.Parallel()
	app, keys := input.ConfigMap("app"), fingerprint.SomeKeys("key-1")
	content := func(n int) fingerprint.Content {
		data := map[string]string{}
		for i := range n {
			data[fmt.Sprint("key-", i)] = ""
		}
		return fingerprint.Hasher{}.Content(data, nil)
	}
	for name, c := range map[string]struct{ delivered, now int }{"Grown": {2, 2000}, "Shrunk": {2000, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed, w, e := source(app, ""), web(), given(nil)
			changed.Content, w.Refs[0].Keys = content(c.now), keys
			e.Inputs[app] = record.Delivered{Version: content(c.delivered).Version(keys)}
			all, err := inputs(clusterOf(changed)).Assess(t.Context(), w, reload("auto"), e, (&history{}).ask)
			if err != nil || len(all.Findings) != 1 {
				t.Fatalf("%d findings, error %v", len(all.Findings), err)
			}
			if f := all.Findings[0]; f.Standing != input.Due || f.Reason != input.Changed {
				t.Errorf("the source is %v, %s", f.Standing, f.Reason)
			}
		})
	}
}

// TestAssessTooManyKeys: a source with more keys than Lockstep keeps is followed as a whole, and
// its hold applies. Only a workload that uses some of its keys is warned, with the bound.
func TestAssessTooManyKeys(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	many := func(value string) fingerprint.Content {
		data := map[string]string{"key": value}
		for i := range 2000 {
			data[fmt.Sprint("key-", i)] = ""
		}
		return fingerprint.Hasher{}.Content(data, nil)
	}
	for name, keys := range map[string]fingerprint.Keys{"All": fingerprint.AllKeys(), "Some": fingerprint.SomeKeys("key-1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			large, w, e := source(app, ""), web(), given(nil)
			large.Content, large.Annotations = many("2"), map[string]string{settings.Hold: "until Monday"}
			w.Refs[0].Keys = keys
			e.Inputs[app] = record.Delivered{Version: many("1").Version(keys)}
			all, err := inputs(clusterOf(large)).Assess(t.Context(), w, reload("auto"), e, (&history{}).ask)
			if err != nil || len(all.Findings) != 1 {
				t.Fatalf("%d findings, error %v", len(all.Findings), err)
			}
			if f := all.Findings[0]; f.Reason != input.Changed || f.Standing != input.Due || len(f.Bars) != 1 || f.Bars[0].Reason != input.Held {
				t.Errorf("a changed and held source is %v, %s, bars %v", f.Standing, f.Reason, f.Bars)
			}
			if name == "All" {
				if len(all.Warnings) > 0 {
					t.Errorf("a workload that uses all keys is warned: %v", all.Warnings)
				}
				return
			}
			if len(all.Warnings) != 1 || all.Warnings[0].Reason != input.TooManyKeys || !strings.Contains(all.Warnings[0].Text, "configmap/app") || !strings.Contains(all.Warnings[0].Text, "16 KiB; split it") {
				t.Errorf("the warnings are %v, want one that names the source, the bound and the way out", all.Warnings)
			}
		})
	}
}

// TestAssessTooManySources: patterns that match more than one workload may follow build no
// findings.
func TestAssessTooManySources(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sources, length, findings int
		says                      string
	}{
		"Most":      {256, 4, 256, ""},
		"OneMore":   {257, 4, 0, "more than 256"},
		"LongNames": {64, 256, 64, ""},
		"OneLonger": {65, 256, 0, "more than 16 KiB"},
	} {
		var many []*kube.Source
		for i := range tc.sources {
			many = append(many, source(input.ConfigMap(fmt.Sprintf("%0*d", tc.length, i)), "1"))
		}
		w := web()
		w.Refs = nil
		all, err := inputs(clusterOf(many...)).Assess(t.Context(), w, reload("configmap/0*"), record.Entry{}, (&history{}).ask)
		if err != nil || len(all.Findings) != tc.findings || !strings.Contains(all.TooMany, tc.says) || (all.TooMany == "") != (tc.says == "") {
			t.Errorf("%s: %d findings, too many is %q, error %v; want %d and %q", name, len(all.Findings), all.TooMany, err, tc.findings, tc.says)
		}
	}
}

// TestAssessRefusedSourcesAreNotCounted: hundreds of sources that refuse to be followed don't hide
// one that a pattern matches too.
func TestAssessRefusedSourcesAreNotCounted(t *testing.T) {
	t.Parallel()
	wanted := input.ConfigMap("c-wanted")
	all := []*kube.Source{source(wanted, "new")}
	for i := range input.MaxInputs + 44 {
		refusing := source(input.ConfigMap(fmt.Sprintf("c-%03d", i)), "1")
		refusing.Annotations = map[string]string{settings.Reload: "never"}
		all = append(all, refusing)
	}
	view := sorted{clusterOf(all...)}
	got := assess(t, inputs(view), reload("configmap/c-*"), given(map[input.ID]string{wanted: "old"}), &history{})
	if diff := cmp.Diff(map[input.ID]input.Reason{wanted: input.Changed}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// sorted is a cluster whose sources are found in the order of their names, as the cache does.
type sorted struct{ cluster }

func (c sorted) SourcesMatching(namespace string, p settings.Pattern) iter.Seq[input.ID] {
	all := slices.Collect(c.cluster.SourcesMatching(namespace, p))
	slices.SortFunc(all, func(a, b input.ID) int { return strings.Compare(a.Name, b.Name) })
	return slices.Values(all)
}

// TestAssessTooManyReferences: of a template that names more sources than Lockstep keeps, only
// those that the workload lists are followed.
func TestAssessTooManyReferences(t *testing.T) {
	t.Parallel()
	w := web()
	for i := range input.MaxInputs {
		w.Refs = append(w.Refs, podrefs.Ref{Source: input.ConfigMap(fmt.Sprint("more-", i)), Keys: fingerprint.AllKeys()})
	}
	never, asks := source(input.ConfigMap("more-1"), "1"), source(input.ConfigMap("more-1"), "1")
	never.Annotations = map[string]string{settings.Reload: "never"}
	asks.Annotations = map[string]string{settings.Reload: "auto"}
	cases := map[string]struct {
		reason   string
		intent   settings.Intent
		source   *kube.Source
		findings int
		tooMany  bool
	}{
		"Auto":              {"it asks for all", reload("auto"), asks, 0, true},
		"Never":             {"one that refuses is one of those that are kept; others may be missing", reload("auto"), never, 0, true},
		"Listed":            {"it lists one", reload("configmap/app"), never, 1, false},
		"ListedBesideAsked": {"a source that it doesn't list asks for its users", reload("configmap/app"), asks, 1, false},
		"Asked":             {"a source asks for its users, and others may be missing", settings.Intent{}, asks, 0, true},
		"Unset":             {"it isn't followed", settings.Intent{}, never, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := inputs(clusterOf(tc.source)).Assess(t.Context(), w, tc.intent, record.Entry{}, (&history{}).ask)
			if err != nil || len(all.Findings) != tc.findings || (all.TooMany != "") != tc.tooMany {
				t.Errorf("%s: %d findings, too many is %q, error %v", tc.reason, len(all.Findings), all.TooMany, err)
			}
		})
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
			got := assess(t, inputs(clusterOf(s)), reload("configmap/none"), record.Entry{}, &history{})
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
				View:  clusterOf(s),
				Since: func(*kube.Workload, input.Kind) (time.Time, bool) { return at(5), tc.begun },
			})
			all, err := in.Assess(t.Context(), w, reload("auto"), record.Entry{}, (&history{}).ask)
			if err != nil || all.Findings[0].Reason != tc.want {
				t.Errorf("%s: %+v, %v; want %s", tc.reason, all.Findings, err, tc.want)
			}
		})
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
			all, err := inputs(clusterOf(s)).Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{s.ID: "1"}), (&history{}).ask)
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
	all, err := inputs(clusterOf(s)).Assess(t.Context(), web(), reload("auto"), given(map[input.ID]string{s.ID: "1"}), (&history{}).ask)
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
			all, err := inputs(clusterOf(s)).Assess(t.Context(), w, reload("auto"), record.Entry{}, (&history{}).ask)
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
	all, err := inputs(clusterOf(odd)).Assess(t.Context(), web(), reload("auto, secret/none"), record.Entry{}, (&history{}).ask)
	if err != nil {
		t.Fatal(err)
	}
	want := []input.Warning{
		{Reason: input.InvalidAnnotation, Text: `configmap/app: annotation lockstep.dev/reload: "yes" isn't valid; accepted: auto, match or never; it has no effect`},
		{Reason: input.SourceUnknown, Text: "the annotation names secret/none, which does not exist"},
	}
	if diff := cmp.Diff(want, all.Warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

// TestAssessSkipped: pods start without a missing source where a place doesn't require it.
func TestAssessSkipped(t *testing.T) {
	t.Parallel()
	app := input.ConfigMap("app")
	was := given(map[input.ID]string{app: "1"})
	for name, tc := range map[string]struct {
		ref     podrefs.Ref
		view    cluster
		entry   record.Entry
		skipped bool
	}{
		"Optional": {podrefs.Ref{Optional: true}, clusterOf(), was, true},
		"Mixed":    {podrefs.Ref{Mixed: true}, clusterOf(), was, true},
		"Required": {podrefs.Ref{}, clusterOf(), was, false},
		"Exists":   {podrefs.Ref{Optional: true}, clusterOf(source(app, "1")), was, false},
		"Never":    {podrefs.Ref{Optional: true}, clusterOf(), given(nil), false},
	} {
		w := web()
		tc.ref.Source, tc.ref.Keys = app, fingerprint.AllKeys()
		w.Refs = []podrefs.Ref{tc.ref}
		all, err := inputs(tc.view).Assess(t.Context(), w, reload("auto"), tc.entry, (&history{}).ask)
		if err != nil || len(all.Findings) != 1 || all.Findings[0].Skipped != tc.skipped {
			t.Errorf("%s: %+v, %v, want skipped %t", name, all.Findings, err, tc.skipped)
		}
	}
}
