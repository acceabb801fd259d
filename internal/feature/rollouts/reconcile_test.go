package rollouts

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// scene is everything around the loop: one workload with given inputs, a record,
// and an API server that answers as it is told.
type scene struct {
	workload *kube.Workload
	listed   bool
	findings []input.Finding
	assess   error
	answers  []error // of the API server, in turn; nil when there are no more
	putNow   error   // of the record
	full     string  // why it has no room
	kept     int     // how often room was kept and not given back

	moved    []input.Order
	sent     []string // the resource version of each patch
	rereads  int
	change   func(later *kube.Workload) // by another client, before the workload is read again
	unread   error                      // of that read
	stopped  bool
	secured  int // how much room was kept when the last patch was sent
	entry    *record.Entry
	recorded int
	blind    bool
	told     []announce.Event
	dropped  []kube.Key
	awaited  int

	clock    time.Time
	moving   time.Duration // how long the API server takes for a patch
	registry *prometheus.Registry
}

func newScene() *scene {
	return &scene{
		workload: &kube.Workload{
			Identity:    kube.Identity{Key: web("web"), Kind: kube.Deployment(), UID: "4711"},
			Annotations: map[string]string{settings.Reload: "auto"},
		},
		listed: true, findings: []input.Finding{due(app, time.Hour)},
		clock: now, registry: prometheus.NewRegistry(),
	}
}

func (s *scene) Workload(kube.Key) (*kube.Workload, bool) { return s.workload, s.workload != nil }
func (s *scene) Lists(kube.Key) bool                      { return s.listed }
func (s *scene) Namespace(string) (*kube.Namespace, bool) { return nil, false }
func (s *scene) Await(*kube.Workload)                     { s.awaited++ }
func (s *scene) AwaitHealth(*kube.Workload)               { s.awaited++ }

func (s *scene) Followers(_ input.Change, visit func(*kube.Workload)) { visit(s.workload) }

func (s *scene) LacksNamespace(string) bool   { return false }
func (s *scene) KnowsNamespaces() bool        { return !s.blind }
func (s *scene) Announce(e announce.Event)    { s.told = append(s.told, e) }
func (s *scene) Reserve(kube.Key, int) string { s.kept++; return s.full }
func (s *scene) FreeRoom(kube.Key)            { s.kept = 0 }
func (s *scene) Forget(kube.Key)              { s.entry = nil }
func (s *scene) Drop(key kube.Key)            { s.dropped = append(s.dropped, key) }
func (s *scene) Kinds() []input.Kind          { return []input.Kind{input.KindConfigMap, input.KindSecret} }

func (s *scene) Assess(context.Context, *kube.Workload, settings.Intent, record.Entry, kube.AskPast) (input.Assessment, error) {
	return input.Assessment{Findings: s.findings}, s.assess
}

func (s *scene) Entry(kube.Key) (record.Entry, bool) {
	if s.entry == nil {
		return record.Entry{}, false
	}
	return *s.entry, true
}

func (s *scene) Put(_ kube.Key, e record.Entry) error {
	s.entry = &e
	s.recorded++
	return nil
}

func (s *scene) PutNow(_ context.Context, key kube.Key, e record.Entry) (time.Time, error) {
	if s.putNow != nil {
		return time.Time{}, s.putNow
	}
	return now, s.Put(key, e)
}

// Reread is the workload at the next version, after the change.
func (s *scene) Reread(context.Context, *kube.Workload) (*kube.Workload, error) {
	if s.change == nil {
		return nil, errors.New("not read again in this test")
	}
	later := *s.workload
	s.rereads++
	later.ResourceVersion, later.Target.ResourceVersion = strconv.Itoa(s.rereads), strconv.Itoa(s.rereads)
	s.change(&later)
	return &later, s.unread
}

func (s *scene) RollOut(_ context.Context, w *kube.Workload, o input.Order) (kube.RolledOut, error) {
	s.sent = append(s.sent, w.Target.ResourceVersion)
	if len(s.answers) > 0 {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		if answer != nil {
			return kube.RolledOut{}, answer
		}
	}
	s.moved, s.secured = append(s.moved, o), s.kept
	s.clock = s.clock.Add(s.moving)
	return kube.RolledOut{At: now}, nil
}

func (s *scene) loop() *Reconciler {
	return New(DefaultOptions(), s.dependencies())
}

// loopOn is the loop with strategies that work on pods.
func (s *scene) loopOn(p Pods) *Reconciler {
	d := s.dependencies()
	d.OnPods.Pods = p
	return New(DefaultOptions(), d)
}

func (s *scene) dependencies() Dependencies {
	return Dependencies{
		Vocabulary: settings.Native{Defaults: settings.Defaults{Quiet: 5 * time.Second}},
		Cluster:    s, Families: []Family{s}, Records: s, Room: s, OnPods: PodParts{Prompt: s}, Roller: s, Announcer: s,
		Metrics: s.registry, Log: logr.Discard(), Now: func() time.Time { return s.clock },
	}
}

// metric is the value of a metric without labels, or with a label of that value, zero
// when there is none; of a histogram, the sum.
func (s *scene) metric(t *testing.T, name string, value ...string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if len(value) == 0 || strings.Contains(m.String(), value[0]) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
			}
		}
	}
	return 0
}

// TestDeliveryIsMeasuredAfterThePatch: an API server that takes long is a part of
// what people wait for.
func TestDeliveryIsMeasuredAfterThePatch(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.findings, s.moving = []input.Finding{due(app, 10*time.Second)}, 20*time.Second
	if _, err := s.loop().Reconcile(t.Context(), s.workload.Key); err != nil {
		t.Fatal(err)
	}
	if got := s.metric(t, "lockstep_delivery_seconds"); got != 30 {
		t.Errorf("delivered after %vs, want the 10s until the patch and the 20s of it", got)
	}
}

// TestPendingEndsWithTheWorkload: one that is gone waits for nothing, and neither
// does one whose namespace is no longer watched; that one's record stays.
func TestPendingEndsWithTheWorkload(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{true, false} {
		s := newScene()
		s.findings = []input.Finding{due(app, time.Second)}
		loop := s.loop()
		for _, want := range []float64{1, 0} {
			if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
				t.Fatal(err)
			}
			if got := s.metric(t, "lockstep_pending_workloads"); got != want {
				t.Errorf("listed=%t: %v workloads wait, want %v", listed, got, want)
			}
			s.workload, s.listed = nil, listed
		}
		if (s.entry == nil) != listed {
			t.Errorf("listed=%t: the entry is %+v", listed, s.entry)
		}
		if len(s.dropped) != 1 || s.dropped[0] != web("web") {
			t.Errorf("listed=%t: the inputs are told to forget %v", listed, s.dropped)
		}
	}
}

// TestConflictLeadsToANewDecision: what was decided on has changed, so nothing is
// written, recorded or told, and the workload is looked at again.
func TestConflictLeadsToANewDecision(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Pending: record.Pending{PendingSince: ago(time.Hour), DelaySince: ago(time.Hour)}, Inputs: map[input.ID]record.Delivered{app: {Version: v1, Due: v2.Short()}}}
	s.answers = []error{writtenMeanwhile()}
	loop := s.loop()
	result, err := loop.Reconcile(t.Context(), s.workload.Key)
	if err != nil || result.RequeueAfter <= 0 {
		t.Fatalf("result %+v, error %v; want another look soon", result, err)
	}
	if len(s.moved)+s.recorded+len(s.told) != 0 {
		t.Errorf("after a conflict: moved %v, recorded %d times, told %v", s.moved, s.recorded, s.told)
	}

	// Whoever wrote it meanwhile rolled it out; the next look sees that.
	s.findings = []input.Finding{recorded(app, input.DeliveredByRollout)}
	if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil {
		t.Fatal(err)
	}
	if len(s.moved) != 0 || s.recorded != 1 {
		t.Errorf("the old decision was carried out: moved %v, recorded %d times", s.moved, s.recorded)
	}
}

// writtenMeanwhile is the API server's answer to a patch of an older version.
func writtenMeanwhile() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("written meanwhile"))
}

// TestConflictsAreSpacedOut: most are over with the next event of the watch. Those that don't
// end are reported once, as long as they last, and the queue paces them from then on.
func TestConflictsAreSpacedOut(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web")
	s := newScene()
	loop := s.loop()
	attempt := func(answer error) string {
		s.answers = []error{answer}
		result, err := loop.Reconcile(t.Context(), web("web"))
		if err != nil {
			return err.Error()
		}
		return result.RequeueAfter.String()
	}
	const failure = `roll deployment/web in namespace shop: other clients wrote the workload during each of the last 7 attempts, and Lockstep keeps trying: Operation cannot be fulfilled on deployments "web": written meanwhile`
	for i, want := range []string{"200ms", "400ms", "800ms", "1.6s", "3.2s", "6.4s", failure, failure} {
		answer := writtenMeanwhile()
		if i == 2 {
			answer = gone
		}
		if got := attempt(answer); got != want {
			t.Errorf("attempt %d: %s, want %s", i+1, got, want)
		}
	}
	if len(s.told) != 1 || s.told[0].Reason != string(input.ReloadFailed) || !strings.Contains(s.told[0].Note, "other clients wrote the workload") {
		t.Errorf("told %+v, want once that the workload can't be rolled out, and why", s.told)
	}
	if d := s.entry.Decision; d.Reason != input.ReloadFailed || !strings.Contains(d.Message, "other clients wrote the workload") {
		t.Errorf("on record is %+v, want what explain and status report", d)
	}
	conflicts, failures := s.metric(t, "lockstep_reloads_total", "conflict"), s.metric(t, "lockstep_reloads_total", "failure")
	if conflicts != 6 || failures != 2 {
		t.Errorf("%v conflicts and %v failures are counted, want 6 and 2", conflicts, failures)
	}
	if got := attempt(nil); got != "0s" || len(s.moved) != 1 || s.entry.Decision.Reason == input.ReloadFailed {
		t.Errorf("after the last conflict: %s, moved %v, on record %+v", got, s.moved, s.entry.Decision)
	}
	s.findings = []input.Finding{due(app, time.Hour)}
	if got := attempt(writtenMeanwhile()); got != "200ms" {
		t.Errorf("after a success, a conflict waits %s, want 200ms", got)
	}
}

// TestPatchIsSentAgainWhileTheDecisionHolds: beside a client that always writes the workload, the
// patch is sent again for the current version, but only if nothing that was decided on changed.
func TestPatchIsSentAgainWhileTheDecisionHolds(t *testing.T) {
	t.Parallel()
	always := make([]error, 20)
	for i := range always {
		always[i] = writtenMeanwhile()
	}
	cases := map[string]struct {
		reason  string
		answers []error
		change  func(s *scene, later *kube.Workload)
		sent    []string // resource versions of the patches
		moved   int
	}{
		"SecondPatch": {"a label was written", always[:1], func(*scene, *kube.Workload) {}, []string{"", "1"}, 1},
		"LastPatch":   {"one was written each time", always[:4], func(*scene, *kube.Workload) {}, []string{"", "1", "2", "3", "4"}, 1},
		"NoEnd":       {"the API server isn't asked for ever", always, func(*scene, *kube.Workload) {}, []string{"", "1", "2", "3", "4"}, 0},
		"Held": {"a user forbids the change", always[:1], func(_ *scene, later *kube.Workload) {
			later.Annotations = map[string]string{settings.Reload: "auto", settings.Hold: "release"}
		}, []string{""}, 0},
		"Unreadable": {"what was written isn't known", always[:1], func(s *scene, _ *kube.Workload) { s.unread = errors.New("refused") }, []string{""}, 0},
		"Stopped":    {"an operator stopped everything meanwhile", always[:1], func(s *scene, _ *kube.Workload) { s.stopped = true }, []string{""}, 0},
		"Refused":    {"another answer isn't a conflict", []error{errors.New("quota exceeded")}, func(*scene, *kube.Workload) {}, []string{""}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.answers = tc.answers
			s.change = func(later *kube.Workload) { tc.change(s, later) }
			d := s.dependencies()
			d.Stopped = func(string) (string, bool) { return "incident", s.stopped }
			_, _ = New(DefaultOptions(), d).Reconcile(t.Context(), web("web"))
			if diff := cmp.Diff(tc.sent, s.sent); diff != "" || len(s.moved) != tc.moved {
				t.Errorf("%s: rolled out %d times, want %d; versions of the patches (-want +got)\n%s", tc.reason, len(s.moved), tc.moved, diff)
			}
			if got := s.metric(t, "lockstep_reloads_total", "conflict"); name != "Refused" && int(got) != len(tc.sent)-tc.moved {
				t.Errorf("%s: %v conflicts are counted, want %d", tc.reason, got, len(tc.sent)-tc.moved)
			}
		})
	}
}

// TestLostRecordIsNoLostWorkload: that something is not found is the end only of what
// was to be moved. A series of evictions whose record cannot be written is tried again.
func TestLostRecordIsNoLostWorkload(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations[settings.Strategy] = "evict"
	s.putNow = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "lockstep-system")
	loop := s.loopOn(noPods{})
	if _, err := loop.Reconcile(t.Context(), web("web")); !errors.Is(err, s.putNow) {
		t.Errorf("error %v, want that of the record: the queue tries again", err)
	}
	if len(s.told) != 1 || s.told[0].Reason != string(input.ReloadFailed) {
		t.Errorf("told %+v, want the failure", s.told)
	}
}

// noPods are the pods of a workload without any.
type noPods struct{}

func (noPods) List(context.Context, *kube.Workload) ([]pods.Pod, error) { return nil, nil }
func (noPods) Evict(context.Context, pods.Pod) error                    { return nil }
func (noPods) Touch(context.Context, pods.Pod, string) error            { return nil }

func TestRefusedChangeIsToldOnceAndTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene()
	refusal := errors.New("quota exceeded")
	s.answers = []error{refusal, refusal}
	loop := s.loop()
	for range 2 {
		if _, err := loop.Reconcile(t.Context(), s.workload.Key); !errors.Is(err, refusal) {
			t.Fatalf("error %v, want the refusal: the queue tries again", err)
		}
	}
	if len(s.told) != 1 || s.told[0].Reason != string(input.ReloadFailed) {
		t.Errorf("told %+v, want the failure once", s.told)
	}
	if s.recorded != 1 || s.entry.Inputs[app].Version != v2.Unknown() || !s.entry.PendingSince.Equal(now) {
		t.Errorf("recorded %d times: %+v; want it on record once as due, or the next process would take it as given", s.recorded, s.entry)
	}
	if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil || len(s.moved) != 1 || s.entry.Inputs[app].Version != v2 {
		t.Errorf("then: error %v, %d moves, on record %+v", err, len(s.moved), s.entry)
	}
}

// TestDeniedChangeIsNotTriedAgainSoon: only an administrator can change what an admission policy denies.
func TestDeniedChangeIsNotTriedAgainSoon(t *testing.T) {
	t.Parallel()
	s := newScene()
	const halfHour = 30 * time.Minute
	s.clock = now.Truncate(halfHour)
	text := "ValidatingAdmissionPolicy 'lockstep-namespaces' with binding 'lockstep-namespaces' denied request: not here"
	told := "not here (ValidatingAdmissionPolicy 'lockstep-namespaces'); not rolled out: configmap/app"
	denial := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(text))
	denial.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: text}}
	s.answers = []error{denial, denial}
	loop := s.loop()
	for range 2 {
		result, err := loop.Reconcile(t.Context(), s.workload.Key)
		if err != nil || result.RequeueAfter != halfHour {
			t.Fatalf("tried again after %s, error %v; want %s and no error, which the queue would retry", result.RequeueAfter, err, halfHour)
		}
	}
	if len(s.told) != 2 || s.told[0].Reason != string(input.Following) || s.told[1].Reason != string(input.ReloadFailed) || !strings.HasPrefix(s.told[1].Note, told) {
		t.Errorf("told %+v, want that the workload is followed, and the policy's message once", s.told)
	}
	if d := s.entry.Decision; d.Reason != input.ReloadFailed || !strings.HasPrefix(d.Message, told) || s.entry.Inputs[app].Version != v2.Unknown() {
		t.Errorf("on record: %+v, decision %+v; want the change as due, and why", s.entry, d)
	}
	if got := s.metric(t, "lockstep_pending_workloads", string(input.ReloadFailed)); got != 1 {
		t.Errorf("%v workloads are pending, want 1", got)
	}
	if _, err := loop.Reconcile(t.Context(), s.workload.Key); err != nil || len(s.moved) != 1 || s.entry.Inputs[app].Version != v2 {
		t.Errorf("after the policy is gone: error %v, %d moves, on record %+v", err, len(s.moved), s.entry)
	}
}

// TestDeletedIsNotPending: a workload with finalizers may be on its way out for long, and nothing
// waits for it meanwhile.
func TestDeletedIsNotPending(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.findings = []input.Finding{due(app, 0)}
	loop := s.loop()
	for _, tc := range []struct {
		deleting bool
		want     int
	}{{false, 1}, {true, 0}} {
		s.workload.Deleting = tc.deleting
		if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if got := loop.reported.tally(now).pending[input.QuietWindow]; got != tc.want {
			t.Errorf("deleting %t: %d workloads are pending, want %d", tc.deleting, got, tc.want)
		}
	}
}

func TestNothingIsDoneOnGuesses(t *testing.T) {
	t.Parallel()
	known := record.Entry{ID: web("web").ID(), UID: "4711"}
	cases := map[string]struct {
		reason string
		change func(*scene)
		forget bool
		fails  bool
	}{
		"GatherFails": {"what cannot be read is not decided on", func(s *scene) { s.assess = errors.New("no answer") }, false, true},
		"Gone":        {"a workload that is certainly gone is forgotten", func(s *scene) { s.workload = nil }, true, false},
		"MaybeGone":   {"one that is not listed may well exist", func(s *scene) { s.workload, s.listed = nil, false }, false, false},
		"Deleting":    {"a workload on its way out is left alone", func(s *scene) { s.workload.Deleting = true }, false, false},
		"NotFollowed": {"never drops the entry", func(s *scene) { s.findings = nil }, true, false},
		"MaybeAsked":  {"a namespace that cannot be read may ask for it", func(s *scene) { s.findings, s.blind = nil, true }, false, false},
		"Refused": {"unless it refuses itself", func(s *scene) {
			s.findings, s.blind = nil, true
			s.workload.Annotations[settings.Reload] = "never"
		}, true, false},
		"BadSetting": {"a setting that nobody understands keeps it", func(s *scene) { s.workload.Annotations[settings.Quiet] = "soon" }, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			entry := known.Clone()
			s.entry = &entry
			tc.change(s)
			_, err := s.loop().Reconcile(t.Context(), web("web"))
			if (err != nil) != tc.fails {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if (s.entry == nil) != tc.forget {
				t.Fatalf("%s: the entry is %+v", tc.reason, s.entry)
			}
			if s.entry != nil {
				s.entry.Decision = record.Decision{}
			}
			if len(s.moved) != 0 || s.entry != nil && !s.entry.Equal(known) {
				t.Errorf("%s: moved %v, recorded %+v", tc.reason, s.moved, s.entry)
			}
		})
	}
}

// TestNotFollowedKeepsWhatOthersKnow: a family that is not here may be back tomorrow.
func TestNotFollowedKeepsWhatOthersKnow(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		s := newScene()
		s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}, input.Image("web"): {Version: v2}}}
		s.findings = nil
		if refuses {
			s.workload.Annotations[settings.Reload] = "never"
		}
		if _, err := s.loop().Reconcile(t.Context(), web("web")); err != nil {
			t.Fatal(err)
		}
		if refuses != (s.entry == nil) {
			t.Errorf("refuses=%t: the entry is %+v", refuses, s.entry)
		}
		if !refuses && (len(s.entry.Inputs) != 1 || s.entry.Inputs[input.Image("web")].Version != v2) {
			t.Errorf("the entry is %+v, want the image and nothing else", s.entry)
		}
	}
}

// TestNothingUsedStaysOnRecord: only the record shows that a template which uses a source again was rolled out since.
func TestNothingUsedStaysOnRecord(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		s := newScene()
		s.findings = nil
		s.entry = &record.Entry{
			ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}},
			Coverage: record.Coverage{Template: record.Template{Sum: "earlier"}},
		}
		if !asks {
			delete(s.workload.Annotations, settings.Reload)
		}
		dependencies := s.dependencies()
		dependencies.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) { return timeline.Past{Asked: true}, nil }
		loop := New(DefaultOptions(), dependencies)
		for range 2 { // once more without an input on record
			if _, err := loop.Reconcile(t.Context(), web("web")); err != nil {
				t.Fatal(err)
			}
		}
		if asks != (s.entry != nil) {
			t.Fatalf("asks=%t: the entry is %+v", asks, s.entry)
		}
		if asks && (len(s.entry.Inputs) != 0 || s.entry.Template != s.workload.Template()) {
			t.Errorf("the entry is %+v, want the template and no input", s.entry)
		}
	}
}

// crowded is a family that finds more inputs than a workload may have.
type crowded struct{ Family }

func (crowded) Assess(context.Context, *kube.Workload, settings.Intent, record.Entry, kube.AskPast) (input.Assessment, error) {
	return input.Assessment{TooMany: "it uses or lists more than 256 ConfigMaps and Secrets"}, nil
}

// TestTooManyInputsAreTold: a family that stops at the bound has no findings. That isn't a
// workload without inputs: its record stays, and it is told.
func TestTooManyInputsAreTold(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.workload.Annotations = map[string]string{settings.Reload: "auto"}
	s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v1}}}
	d := s.dependencies()
	d.Families = []Family{crowded{s}, s}
	if _, err := New(DefaultOptions(), d).Reconcile(t.Context(), s.workload.Key); err != nil {
		t.Fatal(err)
	}
	if s.toldOf(input.TooManySources) != 1 || s.entry == nil || s.entry.Inputs[app].Version != v1 {
		t.Errorf("told %d times; the entry is %+v", s.toldOf(input.TooManySources), s.entry)
	}
}

// TestGathererMarksEstimates: bounds and times are known only to who watches.
func TestGathererMarksEstimates(t *testing.T) {
	t.Parallel()
	s := newScene()
	g := &Gatherer{
		Vocabulary: settings.Native{}, View: s, Families: []Family{s}, Entry: s.Entry, Now: func() time.Time { return now },
	}
	for _, live := range []bool{false, true} {
		if live {
			g.Read = func(context.Context) error { return nil }
		}
		got, err := g.Gather(t.Context(), web("web"))
		if err != nil || got.Observation.Estimate != live || Decide(got.Observation).Estimate != live {
			t.Errorf("live=%t: an estimate: %t, error %v", live, got.Observation.Estimate, err)
		}
	}
	failure := errors.New("no answer")
	g.Read = func(context.Context) error { return failure }
	if _, err := g.Gather(t.Context(), web("web")); !errors.Is(err, failure) {
		t.Errorf("error %v, want that of the reading", err)
	}
}

// TestAnotherUIDIsAnotherWorkload: an entry of a namesake says nothing.
func TestAnotherUIDIsAnotherWorkload(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.entry = &record.Entry{ID: web("web").ID(), UID: "old", Pending: record.Pending{PendingSince: ago(time.Hour)}, Inputs: map[input.ID]record.Delivered{db: {Version: v1}}}
	s.findings = []input.Finding{recorded(app, input.Baseline)}
	if _, err := s.loop().Reconcile(t.Context(), web("web")); err != nil {
		t.Fatal(err)
	}
	if s.entry.UID != "4711" || len(s.entry.Inputs) != 1 || !s.entry.PendingSince.IsZero() {
		t.Errorf("the entry is %+v, want a new one", s.entry)
	}
}

// TestWaitForPodsIsReportedAtOnce: no event follows a rollout by another writer that has ended before Lockstep started.
// With OnDelete, the next decision reports which pods still run the version before.
func TestWaitForPodsIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	for name, updated := range map[string]int{"OlderPods": 1, "Done": 2} {
		s := newScene()
		s.workload.Status.Status = health.Status{Observed: true, Counted: true, OnDelete: true, Counts: health.Counts{Wanted: 2, Existing: 2, Updated: updated}}
		s.entry = &record.Entry{ID: web("web").ID(), UID: "4711", Inputs: map[input.ID]record.Delivered{app: {Version: v2}}}
		s.findings = []input.Finding{recorded(app, input.DeliveredByRollout)}
		dependencies := s.dependencies()
		dependencies.Revisions = func(context.Context, *kube.Workload) (timeline.Past, error) { return timeline.Past{Asked: true}, nil }
		after, err := New(DefaultOptions(), dependencies).Reconcile(t.Context(), web("web"))
		if err != nil || (after.RequeueAfter > 0) != (updated < 2) {
			t.Errorf("%s: decides again after %s, error %v", name, after.RequeueAfter, err)
		}
	}
}
