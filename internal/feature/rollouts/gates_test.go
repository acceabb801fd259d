package rollouts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// namespaceView has workloads of one namespace.
type namespaceView struct {
	workloads map[string]map[string]string // annotations by the name of a Deployment
	namespace map[string]string
}

func (v namespaceView) Workload(key kube.Key) (*kube.Workload, bool) {
	annotations, ok := v.workloads[key.Name]
	if key.Kind != "Deployment" {
		return nil, false
	}
	return &kube.Workload{Identity: kube.Identity{Key: key, Kind: kube.Deployment(), UID: "4711"}, Annotations: annotations}, ok
}

func (v namespaceView) Namespace(string) (*kube.Namespace, bool) {
	return &kube.Namespace{Annotations: v.namespace}, v.namespace != nil
}

// gatesOf gathers what delays deployment/web in the view.
func gatesOf(v namespaceView, change func(*Gatherer)) Observation {
	g := &Gatherer{
		Vocabulary: settings.Native{}, View: v,
		Entry: func(kube.Key) (record.Entry, bool) { return record.Entry{}, false },
		Now:   func() time.Time { return now },
		Gatekeepers: Gatekeepers{
			Kinds:  kube.Kinds(),
			Before: func(kube.Key, string, []input.Change, func(string) bool) (bool, string) { return false, "" },
		},
	}
	if change != nil {
		change(g)
	}
	w, _ := v.Workload(web("web"))
	in := Observation{Intent: g.intent(w), Now: now}
	in.Findings = []input.Finding{with(due(app, time.Hour), func(f *input.Finding) {
		f.Change = input.Change{Namespace: "shop", ID: app, Version: "2222222222"}
	})}
	g.gates(w, &in)
	return in
}

// mistakes are what users are told about settings that count as absent.
func mistakes(in Observation) string {
	var all []string
	for _, e := range warnings(&kube.Workload{Identity: kube.Identity{Key: web("web"), Kind: kube.Deployment()}}, in) {
		all = append(all, e.Reason+": "+e.Note)
	}
	return strings.Join(all, "\n")
}

// TestWindowOf: the most specific window that is understood counts.
func TestWindowOf(t *testing.T) {
	t.Parallel()
	const closed, open, other = "0 5 * * * 1h", "0 2 * * * 2h", "0 12 * * * 1h" // it is 03:00
	five, noon := now.Add(2*time.Hour), now.Add(9*time.Hour)
	cases := map[string]struct {
		reason                          string
		workload, namespace, controller string
		opens                           time.Time
		on                              string
		says                            []string
	}{
		"None":        {reason: "always open"},
		"Workload":    {reason: "its own", workload: closed, namespace: open, controller: open, opens: five, on: "on the workload"},
		"Open":        {reason: "its own is open", workload: open, namespace: closed, controller: closed, on: "on the workload"},
		"Always":      {reason: "it may be rolled out at any time", workload: "always", namespace: closed, on: "on the workload"},
		"Namespace":   {reason: "that of the namespace", namespace: closed, controller: other, opens: five, on: "on the namespace"},
		"Controller":  {reason: "that of the controller", controller: other, opens: noon, on: "of the controller"},
		"Malformed":   {reason: "the next wider one counts", workload: "at night", namespace: closed, opens: five, on: "on the namespace", says: []string{"InvalidAnnotation: annotation lockstep.dev/window: \"at night\" isn't valid", "no effect"}},
		"Malformed2":  {reason: "and the next", workload: "at night", namespace: "at noon", controller: other, opens: noon, on: "of the controller", says: []string{`"at night"`, "namespace shop: annotation lockstep.dev/window: \"at noon\""}},
		"OnlyMalform": {reason: "none is left", workload: "0 25 * * * 1h", says: []string{"lockstep.dev/window", "no effect"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := namespaceView{workloads: map[string]map[string]string{"web": {settings.Reload: "auto"}}, namespace: map[string]string{}}
			if tc.workload != "" {
				v.workloads["web"][settings.Window] = tc.workload
			}
			if tc.namespace != "" {
				v.namespace[settings.Window] = tc.namespace
			}
			in := gatesOf(v, func(g *Gatherer) { g.Safety.Window = tc.controller })
			if got := in.Gates.Window; !got.Opens.Equal(tc.opens) || got.On != tc.on {
				t.Errorf("%s: %q %s opens at %s, want %s at %s", tc.reason, got.Text, got.On, got.Opens, tc.on, tc.opens)
			}
			said := mistakes(in)
			for _, want := range tc.says {
				if !strings.Contains(said, want) {
					t.Errorf("%s: said %q, want %q", tc.reason, said, want)
				}
			}
			if (said == "") != (len(tc.says) == 0) {
				t.Errorf("%s: said %q", tc.reason, said)
			}
			if d := Decide(in); (d.Reason == input.AwaitsWindow) == tc.opens.IsZero() {
				t.Errorf("%s: the decision is %s", tc.reason, d.Reason)
			}
		})
	}
}

// TestManyWindows: texts that tenants make up don't take more memory.
func TestManyWindows(t *testing.T) {
	t.Parallel()
	var w windows
	for i := range 3 * maxWindows {
		if _, err := w.parse(fmt.Sprintf("0 2 * * * %ds", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.parsed) > maxWindows {
		t.Errorf("%d windows are kept", len(w.parsed))
	}
}

// TestAfterOf: a workload waits for the first of the named ones that isn't finished. Those that
// can't be waited for are reported, and don't delay anything.
func TestAfterOf(t *testing.T) {
	t.Parallel()
	auto := func(after string) map[string]string {
		all := map[string]string{settings.Reload: "auto"}
		if after != "" {
			all[settings.After] = after
		}
		return all
	}
	id := func(name string) string { return web(name).ID() }
	cases := map[string]struct {
		reason     string
		after      string
		others     map[string]map[string]string
		unfinished []string // IDs
		held       []string
		waits      string
		says       []string
	}{
		"None":      {reason: "nothing is named"},
		"Waits":     {reason: "the database isn't finished", after: "deployment/db", others: map[string]map[string]string{"db": auto("")}, unfinished: []string{id("db")}, waits: "deployment/db"},
		"Short":     {reason: "kubectl's short name", after: "deploy/db", others: map[string]map[string]string{"db": auto("")}, unfinished: []string{id("db")}, waits: "deploy/db"},
		"Finished":  {reason: "it is finished", after: "deployment/db", others: map[string]map[string]string{"db": auto("")}},
		"Second":    {reason: "one of two", after: "deployment/db,deployment/cache", others: map[string]map[string]string{"db": auto(""), "cache": auto("")}, unfinished: []string{id("cache")}, waits: "deployment/cache"},
		"Held":      {reason: "a user holds it", after: "deployment/db", others: map[string]map[string]string{"db": auto("")}, held: []string{id("db")}, says: []string{"AfterIgnored: annotation lockstep.dev/after: deployment/db waits for a user"}},
		"Missing":   {reason: "it doesn't exist", after: "deployment/db", says: []string{"AfterIgnored: annotation lockstep.dev/after: deployment/db doesn't exist"}},
		"Unasked":   {reason: "no annotation enables following it", after: "deployment/db", others: map[string]map[string]string{"db": {}}, says: []string{"AfterIgnored", "deployment/db"}},
		"Kind":      {reason: "not a workload", after: "service/db", says: []string{"InvalidAnnotation: annotation lockstep.dev/after: \"service/db\" isn't valid: no followed kind is called \"service\"", "no effect"}},
		"Self":      {reason: "it can't wait for itself", after: "deployment/web", unfinished: []string{id("web")}, says: []string{"InvalidAnnotation: annotation lockstep.dev/after", "each other"}},
		"Breaks":    {reason: "the smallest name goes first", after: "deployment/xy", others: map[string]map[string]string{"xy": auto("deployment/web")}, unfinished: []string{id("xy")}, says: []string{"each other"}},
		"Cycle":     {reason: "the others wait for it", after: "deployment/api", others: map[string]map[string]string{"api": auto("deployment/web")}, unfinished: []string{id("api")}, waits: "deployment/api", says: []string{"InvalidAnnotation", "each other"}},
		"Elsewhere": {reason: "a cycle of others isn't its mistake", after: "deployment/a", others: map[string]map[string]string{"a": auto("deployment/b"), "b": auto("deployment/a")}, unfinished: []string{id("a")}, waits: "deployment/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := namespaceView{workloads: map[string]map[string]string{"web": auto(tc.after)}}
			maps.Copy(v.workloads, tc.others)
			in := gatesOf(v, func(g *Gatherer) {
				g.Before = func(asks kube.Key, named string, due []input.Change, known func(string) bool) (bool, string) {
					switch {
					case asks != web("web") || len(due) != 1:
						t.Errorf("%s asks for %v", asks, due)
					case !known(named):
						return false, "doesn't exist or isn't followed"
					case slices.Contains(tc.held, named):
						return false, "waits for a user (Held)"
					}
					return slices.Contains(tc.unfinished, named), ""
				}
			})
			if in.Gates.After != tc.waits {
				t.Errorf("%s: it waits for %q, want %q", tc.reason, in.Gates.After, tc.waits)
			}
			said := mistakes(in)
			for _, want := range tc.says {
				if !strings.Contains(said, want) {
					t.Errorf("%s: said %q, want %q", tc.reason, said, want)
				}
			}
			if (said == "") != (len(tc.says) == 0) {
				t.Errorf("%s: said %q", tc.reason, said)
			}
			if d := Decide(in); (d.Reason == input.AwaitsWorkload) != (tc.waits != "") {
				t.Errorf("%s: the decision is %s", tc.reason, d.Reason)
			}
		})
	}
}

// TestNotifyProblem: an unknown target of the namespace is reported on its workloads, which are
// rolled out.
func TestNotifyProblem(t *testing.T) {
	t.Parallel()
	v := namespaceView{workloads: map[string]map[string]string{"web": {settings.Reload: "auto"}}, namespace: map[string]string{settings.Notify: "nobody"}}
	in := gatesOf(v, func(g *Gatherer) {
		g.NotifyProblem = func(namespace, target string) string { return "no target " + target + " for " + namespace }
	})
	if said := mistakes(in); !strings.Contains(said, "InvalidAnnotation: namespace shop: annotation lockstep.dev/notify") || !strings.Contains(said, "no target nobody for shop") {
		t.Errorf("said %q", said)
	}
	if d := Decide(in); d.Verb != RollOut {
		t.Errorf("decided to %s, want a rollout", d.Verb)
	}
}

// paced are the paces of sources, and what is on record of them.
func paced() (*paces, seriesOnRecord) {
	stored := seriesOnRecord{}
	return newPaces(SafeOptions().Safety, stored, func(input.Change, string) {}), stored
}

// seriesOnRecord are the series of a record.
type seriesOnRecord map[input.Change]record.Series

func (s seriesOnRecord) Series(of input.Change) (record.Series, bool) {
	known, ok := s[of]
	return known, ok
}

func (s seriesOnRecord) PutSeries(of input.Change, known record.Series) string {
	if s[of] = known; known == (record.Series{}) {
		delete(s, of)
	}
	return ""
}

func (seriesOnRecord) Failures() map[input.Change]record.Failure { return nil }

func (seriesOnRecord) AddFailure(input.Change, string, time.Time) (record.Failure, bool, string) {
	return record.Failure{}, false, ""
}

func versionOf(n int) input.Change {
	return input.Change{Namespace: "shop", ID: app, Version: fmt.Sprintf("%010d", n)}
}

// TestPaces: a source that keeps changing is delayed more and more, also after a restart. Further
// workloads get a version that has begun at once, and ordinary changes aren't put on record.
func TestPaces(t *testing.T) {
	t.Parallel()
	p, stored := paced()
	at := now
	for n := range 5 {
		if until, _ := p.until(versionOf(n)); !until.IsZero() {
			t.Fatalf("version %d waits until %s", n, until)
		}
		if len(stored) > 0 {
			t.Fatalf("before version %d, %v is on record", n, stored)
		}
		p.begin(versionOf(n), at)
		p.begin(versionOf(n), at.Add(time.Second)) // another workload
		at = at.Add(10 * time.Second)
	}
	last := at.Add(-10 * time.Second)
	known := stored[versionOf(0).Subject()]
	if known.Level != 5 || known.Version != versionOf(4).Version || !known.Last.Equal(last) {
		t.Errorf("on record is %+v", known)
	}
	restarted := newPaces(SafeOptions().Safety, p.stops, p.noRoom)
	for name, each := range map[string]*paces{"before": p, "restarted": restarted} {
		if until, level := each.until(versionOf(5)); level != 5 || !until.Equal(last.Add(30*time.Second)) {
			t.Errorf("%s: the next version waits until %s after %d, want 30s after %s", name, until, level, last)
		}
		if until, _ := each.until(versionOf(4)); !until.IsZero() {
			t.Errorf("%s: the version that has begun waits until %s", name, until)
		}
		if until, _ := each.until(input.Change{Namespace: "blog", ID: app, Version: "x"}); !until.IsZero() {
			t.Errorf("%s: another source waits until %s", name, until)
		}
	}
	restarted.begin(versionOf(5), last.Add(30*time.Second))
	if until, level := restarted.until(versionOf(6)); level != 6 || !until.Equal(last.Add(90*time.Second)) {
		t.Errorf("the seventh waits until %s after %d", until, level)
	}
	restarted.begin(versionOf(6), last.Add(24*time.Hour))
	if until, _ := restarted.until(versionOf(7)); !until.IsZero() || len(stored) > 0 {
		t.Errorf("after a quiet day, the next waits until %s, and %v is on record", until, stored)
	}
}

// TestSeries: copies of a shared source, and tags of a repository, may be two versions at the same time. Workloads that
// get one or the other don't make a series. A source that flaps does.
func TestSeries(t *testing.T) {
	t.Parallel()
	shared := func(n int) (string, input.Finding) {
		return []string{"shop", "blog"}[n%2], input.Finding{ID: app, Change: input.Change{ID: app, Version: fmt.Sprint(n % 2)}}
	}
	image := func(n int) (string, input.Finding) {
		tag := []string{":stable", ":canary", ":edge"}[n%3]
		return "shop", input.Finding{ID: input.Image("web"), Pace: input.Pace{Source: input.Image("web" + tag)}, Change: input.Change{Namespace: "shop", ID: input.Image("web"), Version: tag}}
	}
	source := func(n int) (string, input.Finding) { return "shop", input.Finding{ID: app, Change: versionOf(n % 2)} }
	for name, tc := range map[string]struct {
		reason string
		of     func(n int) (string, input.Finding)
		level  int
	}{
		"Shared": {"one copy after the other changes", shared, 1},
		"Image":  {"workloads follow different tags", image, 1},
		"Source": {"two writers fight", source, 10},
	} {
		p, _ := paced()
		for n := range 10 {
			namespace, f := tc.of(n)
			for _, c := range seriesOf(namespace, []input.Finding{f, f}) {
				p.begin(c, now.Add(time.Duration(n)*time.Second))
			}
		}
		for of, known := range p.known {
			if known.Level != tc.level {
				t.Errorf("%s: %d in a row of %v, want %d: %s", name, known.Level, of, tc.level, tc.reason)
			}
		}
	}
	repair, hidden := due(app, 0), due(db, 0)
	repair.Reason, repair.Change = input.PutBack, versionOf(1)
	hidden.Change = input.Change{ID: db, Version: "77ab01c9de"}
	if got := seriesOf("shop", []input.Finding{repair, hidden}); len(got) != 1 || got[0].ID != db || got[0].Version == "77ab01c9de" {
		t.Errorf("a repair, and a shared Secret: %v, want only the Secret without its digest", got)
	}
}

// TestPacesAreBounded: quiet sources are forgotten.
func TestPacesAreBounded(t *testing.T) {
	t.Parallel()
	p, _ := paced()
	for n := range 4 * manySeries {
		c := versionOf(1)
		c.ID = input.ConfigMap(fmt.Sprintf("app-%d", n))
		p.begin(c, now.Add(time.Duration(n)*time.Minute))
	}
	if len(p.known) > manySeries {
		t.Errorf("%d sources are kept", len(p.known))
	}
}

// TestDampedWorkload: a workload that is rolled out again and again is delayed, whatever makes it
// due; the count is on record.
func TestDampedWorkload(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	o := DefaultOptions()
	o.Safety.Damping, o.Safety.MaxDamping = 30*time.Second, 15*time.Minute
	r := New(o, s.dependencies())
	for n := range 5 {
		if _, err := r.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if len(s.moved) != n+1 {
			t.Fatalf("rolled out %d times, want %d; %+v", len(s.moved), n+1, s.entry.Decision)
		}
	}
	if s.entry.Again != 5 {
		t.Errorf("on record is a count of %d", s.entry.Again)
	}
	result, err := r.Reconcile(t.Context(), web("web"))
	if err != nil || len(s.moved) != 5 || s.entry.Decision.Reason != input.Damped || result.RequeueAfter != 30*time.Second {
		t.Errorf("rolled out %d times, and then %s, next check after %s, %v", len(s.moved), s.entry.Decision.Reason, result.RequeueAfter, err)
	}
	if d := s.entry.Decision.Message; !strings.Contains(d, "5 times in a row") {
		t.Errorf("the message is %q", d)
	}
	s.clock = s.clock.Add(30 * time.Second)
	if _, err := r.Reconcile(t.Context(), web("web")); err != nil || len(s.moved) != 6 || s.entry.Again != 6 {
		t.Errorf("after the pause, rolled out %d times with a count of %d, %v", len(s.moved), s.entry.Again, err)
	}
}

// lateStop is a family whose answer takes so long that an operator stops everything meanwhile.
type lateStop struct{ stopped *bool }

func (lateStop) Kinds() []input.Kind { return nil }

func (lateStop) Drop(kube.Key) {}

func (f lateStop) Assess(context.Context, *kube.Workload, settings.Intent, record.Entry, kube.AskPast) (input.Assessment, error) {
	*f.stopped = true
	return input.Assessment{Findings: []input.Finding{due(app, time.Hour)}}, nil
}

// TestStopIsReadLast: a stop counts even when it comes while the workload is checked.
func TestStopIsReadLast(t *testing.T) {
	t.Parallel()
	stopped := false
	g := &Gatherer{
		Vocabulary: settings.Native{}, View: namespaceView{workloads: map[string]map[string]string{"web": {settings.Reload: "auto"}}},
		Families:    []Family{lateStop{&stopped}},
		Entry:       func(kube.Key) (record.Entry, bool) { return record.Entry{}, false },
		Now:         func() time.Time { return now },
		Gatekeepers: Gatekeepers{Stopped: func(string) (string, bool) { return "incident 42", stopped }},
	}
	got, err := g.Gather(t.Context(), web("web"))
	if err != nil {
		t.Fatal(err)
	}
	if d := Decide(got.Observation); d.Reason != input.Stopped {
		t.Errorf("%s %s, want %s", d.Verb, d.Reason, input.Stopped)
	}
}
