package rollouts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// crew is a process with many Deployments that use one ConfigMap. The test plays the Deployment
// controller and the clock.
type crew struct {
	scene // what the tests here don't need

	deployments map[kube.Key]*appsv1.Deployment
	workloads   map[kube.Key]*kube.Workload
	entries     map[kube.Key]record.Entry
	failures    map[input.Change]record.Failure
	version     string // of the ConfigMap, one digit
	changed     time.Time
	resumed     []string
	tags        map[string]string // the change is that of an image, of these versions by name
	shared      bool              // the change is that of a Secret that is shared: no digest shows it
	secret      input.Finding     // of a Secret that a uses, none without an ID
	refuses     error             // the answer to the next patch
	unreadable  map[string]error
	order       []string        // of the patches
	woken       map[string]bool // by name
	safety      Safety
	loop        *Reconciler
}

// newCrew makes that many healthy Deployments, a, b, c, which have version 1, and changes it to 2.
func newCrew(t *testing.T, size int, safety Safety) *crew {
	t.Helper()
	c := &crew{
		scene:       scene{clock: now, listed: true},
		deployments: map[kube.Key]*appsv1.Deployment{}, workloads: map[kube.Key]*kube.Workload{}, entries: map[kube.Key]record.Entry{},
		failures: map[input.Change]record.Failure{}, woken: map[string]bool{}, version: "1", safety: safety,
	}
	for i := range size {
		c.create(t, string(rune('a'+i)))
	}
	c.start()
	c.pass(t, time.Minute)
	c.change(t, "2")
	return c
}

// change gives the ConfigMap another version.
func (c *crew) change(t *testing.T, version string) {
	t.Helper()
	c.version, c.changed = version, c.clock
	c.pass(t, 0)
}

func (c *crew) create(t *testing.T, name string) {
	t.Helper()
	c.deployments[web(name)] = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "4711", Generation: 1, Annotations: map[string]string{settings.Reload: "auto"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
	}
	c.status(t, name, 2, 2)
}

// start begins with what is on record.
func (c *crew) start() {
	c.registry = prometheus.NewRegistry()
	o := DefaultOptions()
	o.Safety = c.safety
	c.loop = New(o, Dependencies{
		Vocabulary: settings.Native{Defaults: settings.Defaults{Quiet: time.Second}},
		Cluster:    c, Families: []Family{c}, Records: c, Roller: c, Announcer: c, Metrics: c.registry, Log: logr.Discard(), Now: func() time.Time { return c.clock },
		Revisions:   func(context.Context, *kube.Workload) (timeline.Past, error) { return timeline.Past{}, nil },
		Gatekeepers: Gatekeepers{Failure: c.Failure, Stops: c, Bars: c.bars, SourceReference: c.reference},
	})
	c.loop.Wake(func(key kube.Key) { c.woken[key.Name] = true })
}

// pass lets time pass, and checks everything until there is nothing more to check.
func (c *crew) pass(t *testing.T, d time.Duration) {
	t.Helper()
	c.clock = c.clock.Add(d)
	for key := range c.workloads {
		c.woken[key.Name] = true
	}
	for range 1000 {
		names := slices.Sorted(maps.Keys(c.woken))
		if len(names) == 0 {
			return
		}
		delete(c.woken, names[0])
		if _, err := c.loop.Reconcile(t.Context(), web(names[0])); err != nil && c.refuses == nil && c.unreadable == nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the workloads wake each other without end")
}

// status is what the Deployment controller reports.
func (c *crew) status(t *testing.T, name string, updated, available int32, conditions ...appsv1.DeploymentCondition) {
	t.Helper()
	d := c.deployments[web(name)]
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions}
	c.see(t, name)
}

// see delivers the Deployment through the watch.
func (c *crew) see(t *testing.T, name string) {
	t.Helper()
	w, err := kube.SlimWorkload(kube.Deployment(), c.deployments[web(name)], settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	how := mirror.Arrival{At: c.clock, Watched: true}
	if old := c.workloads[w.Key]; old != nil {
		w.Follow(old, how)
	} else {
		w.First(how)
	}
	c.workloads[w.Key] = w
	c.woken[name] = true
}

// fail makes a rollout fail. Its pods of before keep serving.
func (c *crew) fail(t *testing.T, name string) {
	t.Helper()
	c.status(t, name, 1, 2, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"})
	c.pass(t, 0)
}

func (c *crew) expect(t *testing.T, why string, want int) {
	t.Helper()
	if len(c.order) != want {
		t.Fatalf("%s: rolled out %v, want %d", why, c.order, want)
	}
}

// reason is the decision on record.
func (c *crew) reason(name string) input.Reason { return c.entries[web(name)].Decision.Reason }

func (c *crew) current() fingerprint.Version {
	return fingerprint.Version{Basis: v1.Basis, Sum: strings.Repeat(c.version, 32)}
}

func (c *crew) Workload(key kube.Key) (*kube.Workload, bool) {
	w, ok := c.workloads[key]
	return w, ok
}

func (c *crew) Followers(_ input.Change, visit func(*kube.Workload)) {
	for _, w := range c.workloads {
		visit(w)
	}
}

func (c *crew) Entry(key kube.Key) (record.Entry, bool) {
	e, ok := c.entries[key]
	return e, ok
}

func (c *crew) Put(key kube.Key, e record.Entry) error {
	c.entries[key] = e
	return nil
}

func (c *crew) Failure(of input.Change) record.Failure { return c.failures[record.Published(of)] }

func (c *crew) AddFailure(of input.Change, id string, now time.Time) (record.Failure, bool, string) {
	f, added := c.Failure(of).With(id, now)
	c.failures[record.Published(of)] = f
	return f, added, ""
}

func (c *crew) Failures() map[input.Change]record.Failure    { return c.failures }
func (c *crew) Series(input.Change) (record.Series, bool)    { return record.Series{}, false }
func (c *crew) PutSeries(input.Change, record.Series) string { return "" }
func (c *crew) bars(of input.Change) bool {
	return of.Version == c.current().Short() && len(c.resumed) == 0
}

func (c *crew) reference(_ context.Context, namespace string, id input.ID) (*corev1.ObjectReference, error) {
	return &corev1.ObjectReference{Kind: string(id.Kind), Namespace: namespace, Name: id.Name}, nil
}

func (c *crew) Assess(_ context.Context, w *kube.Workload, _ settings.Intent, given record.Entry, _ kube.AskPast) (input.Assessment, error) {
	current, id := c.current(), app
	if tag := c.tags[w.Key.Name]; tag != "" {
		current.Sum = strings.Repeat(tag, 32)
	}
	change := input.Change{Namespace: "shop", ID: id, Version: current.Short()}
	if c.tags != nil {
		id = input.Image("web")
		change.ID = input.Image("registry.example/web")
	}
	if c.shared {
		id = db
		change = input.Change{ID: id, Version: "shared" + c.version}
	}
	f := input.Finding{
		ID: id, Live: true, Reason: input.InStep, ChangedAt: c.changed, Pace: input.Pace{Resumed: c.resumed},
		Versions: input.Versions{Delivered: given.Inputs[id].Version, Current: current, Shows: input.Tracked(current.Short())},
		Change:   change,
	}
	switch {
	case f.Delivered.IsZero():
		f.Standing, f.Reason = input.Record, input.Baseline
	case f.Delivered != current && w.Shown[id] == f.Shows:
		f.Standing, f.Reason = input.Record, input.DeliveredBefore
	case f.Delivered != current:
		f.Standing, f.Reason = input.Due, input.Changed
	}
	all := []input.Finding{f}
	if err := c.unreadable[w.Key.Name]; err != nil {
		return input.Assessment{}, err
	}
	if also := c.secret; also.ID != (input.ID{}) && w.Key == web("a") {
		if given.Inputs[also.ID].Version == also.Current {
			also.Standing, also.Reason = input.Settled, input.InStep
		}
		all = append(all, also)
	}
	return input.Assessment{Findings: all}, nil
}

func (c *crew) RollOut(_ context.Context, w *kube.Workload, o input.Order) (kube.RolledOut, error) {
	if c.refuses != nil {
		return kube.RolledOut{}, c.refuses
	}
	c.order = append(c.order, w.Key.Name)
	d := c.deployments[w.Key]
	d.Generation++
	d.Spec.Template.Annotations = map[string]string{settings.Inputs: o.Shown(w.Shown).String()}
	next, err := kube.SlimWorkload(kube.Deployment(), d, settings.Native{})
	if err != nil {
		return kube.RolledOut{}, err
	}
	next.Follow(w, mirror.Arrival{At: c.clock, Watched: true})
	c.workloads[w.Key] = next
	return kube.RolledOut{At: c.clock, Template: next.Template()}, nil
}

func careful() Safety {
	return Safety{Ramp: true, MaxRolling: 20, StopAfter: 1, Settle: 10 * time.Second, Timeout: 10 * time.Minute, PauseGrace: 10 * time.Minute}
}

// TestRamp: one workload, then two, then four, each step after the earlier ones are healthy.
func TestRamp(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"Running": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 12, careful())
			c.pass(t, time.Minute)
			for _, want := range []int{1, 3, 7, 12} {
				c.expect(t, "step", want)
				if reason := c.reason("l"); reason != input.AwaitsTurn && want < 12 {
					t.Errorf("the last one waits for %s", reason)
				}
				if restarts {
					c.start()
				}
				c.pass(t, time.Minute)
				c.expect(t, "not proven", want)
				for _, key := range slices.Collect(maps.Keys(c.deployments)) {
					if c.deployments[key].Status.ObservedGeneration < c.deployments[key].Generation {
						c.status(t, key.Name, 2, 2)
					}
				}
				c.pass(t, 0)
				c.expect(t, "not settled", want)
				c.pass(t, c.safety.Settle)
			}
			if left := len(c.loop.spreads.active) + len(c.loop.spreads.of) + len(c.loop.spreads.open); left != 0 {
				t.Errorf("%d things are kept of a change that is through", left)
			}
		})
	}
}

// TestFewGoTogether: three users of a source don't wait for each other.
func TestFewGoTogether(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, careful())
	c.pass(t, time.Minute)
	c.expect(t, "three users", 3)
}

// TestMaxRolling: no more workloads roll than the budget, and a slot is free when one is healthy,
// or makes no progress.
func TestMaxRolling(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 8, Safety{MaxRolling: 3, StopAfter: 1, Settle: time.Second, Timeout: 10 * time.Minute})
	c.pass(t, time.Minute)
	c.expect(t, "the budget", 3)
	if got := c.metric(t, "lockstep_rolling_workloads"); got != 3 {
		t.Errorf("%v workloads are counted as rolling, want 3", got)
	}
	c.status(t, c.order[0], 2, 2)
	c.pass(t, 0)
	c.expect(t, "not settled", 3)
	c.pass(t, time.Second)
	c.expect(t, "one is healthy", 4)
	c.pass(t, 9*time.Minute)
	c.expect(t, "the others may still progress", 4)
	c.pass(t, 2*time.Minute)
	c.expect(t, "three made no progress", 7)
}

// TestUnrecordedPatch: the process ends between patch and record. The next one counts the
// rollout, and a failure stops the version.
func TestUnrecordedPatch(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"ConfigMap": false, "Shared": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 6, careful())
			if c.shared = shared; shared {
				clear(c.entries) // they list the ConfigMap
				c.change(t, "1")
				c.change(t, "2")
			}
			before := maps.Clone(c.entries)
			c.pass(t, time.Minute)
			c.expect(t, "the first step", 1)
			first := c.order[0]
			c.entries = before
			if turn := c.entries[web(first)].Turn; turn.Template != "" || !turn.Healthy {
				t.Fatalf("on record is %+v", turn)
			}
			c.start()
			c.pass(t, time.Minute)
			c.expect(t, "it rolls", 1)
			c.fail(t, first)
			c.pass(t, time.Hour)
			c.expect(t, "it failed", 1)
			if len(c.failures) != 1 {
				t.Error("the version isn't stopped")
			}
		})
	}
}

// TestPatchedAgain: a workload that proves a version gets another Secret, and the process ends before that is on
// record. The next one waits for the proof of both, and notes that both failed.
func TestPatchedAgain(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"Recovers": false, "Fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 6, careful())
			c.pass(t, time.Minute)
			c.expect(t, "the first step", 1)
			c.secret = recorded(db, input.DeliveredBefore)
			c.secret.Change = input.Change{Namespace: "shop", ID: db, Version: c.secret.Current.Short()}
			c.clock = c.clock.Add(5 * time.Second)
			a := c.deployments[web("a")]
			a.Generation++
			a.Spec.Template.Annotations = map[string]string{settings.Inputs: input.Shown{app: input.Tracked(c.current().Short()), db: c.secret.Shows}.String()}
			a.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: kube.FieldManager, Time: new(metav1.NewTime(c.clock)),
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:` + settings.Inputs + `":{}}}}}}`),
			}}
			c.status(t, "a", 1, 2)
			c.start()
			clear(c.woken)
			if _, err := c.loop.Reconcile(t.Context(), web("b")); err != nil { // a wasn't checked yet
				t.Fatal(err)
			}
			c.pass(t, time.Minute)
			c.expect(t, "it rolls", 1)
			if fails {
				c.fail(t, "a")
				c.pass(t, time.Hour)
				c.expect(t, "it failed", 1)
				if len(c.failures) != 2 {
					t.Errorf("stopped are %v, want both versions", c.failures)
				}
				return
			}
			c.status(t, "a", 2, 2)
			c.pass(t, 5*time.Second)
			c.expect(t, "it isn't proven", 1)
			c.pass(t, 10*time.Second)
			c.expect(t, "the second step", 3)
		})
	}
}

// TestGivesBack: a patch that the API server doesn't accept leaves its turn to another.
func TestGivesBack(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"Conflict": apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "a", errors.New("written meanwhile")),
		"Denied":   apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "a", errors.New("not allowed")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 6, careful())
			c.refuses = err
			c.clock = c.clock.Add(time.Minute)
			_, _ = c.loop.Reconcile(t.Context(), web("a"))
			c.refuses = nil
			_, _ = c.loop.Reconcile(t.Context(), web("b"))
			c.expect(t, "the next one", 1)
			c.pass(t, time.Minute)
			c.expect(t, "one at a time", 1)
		})
	}
}

// TestAnswerLost: a patch without an answer may be stored, so its turn goes to nobody else.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 6, careful())
	c.refuses = errors.New("no connection")
	c.clock = c.clock.Add(time.Minute)
	_, _ = c.loop.Reconcile(t.Context(), web("a"))
	c.refuses = nil
	_, _ = c.loop.Reconcile(t.Context(), web("b"))
	c.expect(t, "another one", 0)
	_, _ = c.loop.Reconcile(t.Context(), web("a"))
	c.pass(t, time.Minute)
	c.expect(t, "the same one again", 1)
	if c.order[0] != "a" {
		t.Errorf("%s has the turn", c.order[0])
	}
}

// TestStoredPatchWithoutAnAnswer: a patch is stored, and its answer is lost with the API server. The
// workload is tried again on a cache that doesn't show the patch yet, which is a conflict. Whichever
// workload it is, it keeps its place: no other one rolls beside it.
func TestStoredPatchWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("written meanwhile"))
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 3, Safety{MaxRolling: 1, Timeout: time.Hour})
			c.clock = c.clock.Add(time.Minute)
			c.refuses = errors.New("connection reset by peer")
			_, _ = c.loop.Reconcile(t.Context(), web(name))
			for range 2 {
				c.refuses = nil
				for _, other := range []string{"a", "b", "c"} {
					if other != name {
						_, _ = c.loop.Reconcile(t.Context(), web(other))
					}
				}
				c.expect(t, "another one", 0)
				c.refuses = conflict
				_, _ = c.loop.Reconcile(t.Context(), web(name))
			}
			c.refuses = nil
			d := c.deployments[web(name)]
			d.Generation++
			d.Spec.Template.Annotations = map[string]string{settings.Inputs: app.String() + "~" + c.current().Short()}
			c.see(t, name)
			c.pass(t, time.Minute)
			c.expect(t, "it rolls", 0)
			c.status(t, name, 2, 2)
			c.pass(t, time.Minute) // it is found on trial,
			c.pass(t, time.Minute) // and then complete
			c.expect(t, "the next one", 1)
		})
	}
}

// TestGone: a workload that is deleted while it rolls gives its place back.
func TestGone(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 6, careful())
	c.pass(t, time.Minute)
	first := web(c.order[0])
	delete(c.deployments, first)
	delete(c.workloads, first)
	c.woken[first.Name] = true
	c.pass(t, 0)
	c.expect(t, "the next one", 2)
}

// TestUnbounded: without bounds, all workloads are rolled out at once.
func TestUnbounded(t *testing.T) {
	t.Parallel()
	for name, safety := range map[string]Safety{"Zero": {}, "NoSteps": {StopAfter: 1, Settle: time.Second, Timeout: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 12, safety)
			c.pass(t, time.Minute)
			c.expect(t, "no bounds", 12)
			if len(c.loop.spreads.active) != 0 {
				t.Error("members are counted for nothing")
			}
		})
	}
}

func TestTakesTurn(t *testing.T) {
	t.Parallel()
	changed := with(due(app, time.Hour), func(f *input.Finding) { f.Change = input.Change{ID: app, Version: "2"} })
	restored := with(changed, func(f *input.Finding) { f.Reason = input.PutBack })
	rolls := Decision{Verb: RollOut, Due: []input.Finding{changed}}
	proves := TurnState{Tracked: true, Proves: true}
	for name, tc := range map[string]struct {
		reason   string
		turn     TurnState
		decision Decision
		want     bool
	}{
		"RollOut":     {"a new template", proves, rolls, true},
		"Begin":       {"a series of evictions begins", proves, Decision{Verb: Evict, Eviction: Eviction{Begin: true}, Due: rolls.Due}, true},
		"Evict":       {"the series has its turn", proves, Decision{Verb: Evict, Due: rolls.Due}, false},
		"Refresh":     {"no pod is replaced", proves, Decision{Verb: Refresh, Due: rolls.Due}, false},
		"Remember":    {"nothing is written", proves, Decision{Verb: Remember, Due: rolls.Due}, false},
		"ProvesNot":   {"no pods, or a user replaces them", TurnState{Tracked: true}, rolls, false},
		"Restored":    {"a repair", proves, Decision{Verb: RollOut, Due: []input.Finding{restored}}, false},
		"MoreThanOne": {"a repair with a change", proves, Decision{Verb: RollOut, Due: []input.Finding{restored, changed}}, true},
		"NoChange":    {"a source that doesn't exist", proves, Decision{Verb: RollOut, Due: []input.Finding{due(db, 0)}}, false},
	} {
		if got := (Observation{Turn: tc.turn}).takesTurn(tc.decision); got != tc.want {
			t.Errorf("%s (%s): %t", name, tc.reason, got)
		}
	}
}

// TestProves: which workloads can prove a change.
func TestProves(t *testing.T) {
	t.Parallel()
	counted := func(wanted, available int) health.Status {
		return health.Status{Observed: true, Counted: true, Counts: health.Counts{Wanted: wanted, Existing: wanted, Updated: wanted, Available: available}}
	}
	byHand := counted(2, 2)
	byHand.OnDelete = true
	for name, tc := range map[string]struct {
		reason       string
		status       health.Status
		cronjob      bool
		proves, able bool
	}{
		"Done":        {"every pod is available", counted(2, 2), false, true, true},
		"Unavailable": {"its rollout can prove something, and not first", counted(2, 1), false, true, false},
		"Zero":        {"no pods", counted(0, 0), false, false, false},
		"OnDelete":    {"a user replaces the pods", byHand, false, false, false},
		"CronJob":     {"its pods start by themselves", health.Status{Observed: true}, true, false, false},
	} {
		in := Observation{Now: now, State: WorkloadState{StartsPods: tc.cronjob, Rollout: tc.status}}
		w := &kube.Workload{Status: kube.Progress{Status: tc.status}}
		(&Gatherer{Safety: careful()}).turn(w, &in)
		if in.Turn.Proves != tc.proves || in.Turn.Able != tc.able {
			t.Errorf("%s (%s): proves %t, able %t", name, tc.reason, in.Turn.Proves, in.Turn.Able)
		}
	}
}
