package kube

import (
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// TestObserved: whether a workload's controller has acted on it, as far as it tells.
func TestObserved(t *testing.T) {
	t.Parallel()
	custom := func(apiVersion, kind string, generation int64, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"generation": generation}, "status": status,
		}}
	}
	// lent is a Rollout that is to use that generation of its lender.
	lent := func(wanted, seen string) *unstructured.Unstructured {
		o := custom("argoproj.io/v1alpha1", "Rollout", 1, map[string]any{"observedGeneration": "1", "workloadObservedGeneration": seen})
		o.SetAnnotations(map[string]string{rolloutWorkloadGeneration: wanted})
		return o
	}
	second := metav1.ObjectMeta{Generation: 2}
	cases := map[string]struct {
		reason string
		kind   Kind
		object client.Object
		want   bool
	}{
		"Deployment":    {"it has", Deployment(), &appsv1.Deployment{ObjectMeta: second, Status: appsv1.DeploymentStatus{ObservedGeneration: 2}}, true},
		"Behind":        {"it has not", Deployment(), &appsv1.Deployment{ObjectMeta: second, Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}, false},
		"StatefulSet":   {"it has not", StatefulSet(), &appsv1.StatefulSet{ObjectMeta: second}, false},
		"DaemonSet":     {"it has not", DaemonSet(), &appsv1.DaemonSet{ObjectMeta: second}, false},
		"Rollout":       {"Argo stores text", Rollout(), custom("argoproj.io/v1alpha1", "Rollout", 2, map[string]any{"observedGeneration": "2"}), true},
		"RolloutBehind": {"Argo stores text", Rollout(), custom("argoproj.io/v1alpha1", "Rollout", 2, map[string]any{"observedGeneration": "1"}), false},
		"RolloutNew":    {"Argo has not looked at it", Rollout(), custom("argoproj.io/v1alpha1", "Rollout", 1, nil), false},
		"Lent":          {"it has seen the lender", Rollout(), lent("2", "2"), true},
		"LentBehind":    {"its number may be that of the new template already", Rollout(), lent("3", "2"), false},
		"Custom":        {"a kind that tells", customKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Worker"}, "spec.template"), custom("example.com/v1", "Worker", 2, map[string]any{"observedGeneration": int64(1)}), false},
		"CustomSilent":  {"a kind that does not tell holds up nobody", customKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Worker"}, "spec.template"), custom("example.com/v1", "Worker", 2, map[string]any{}), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.kind.Status(tc.object).Observed; got != tc.want {
				t.Errorf("%s: observed %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestAbortIsAnotherTemplate: pods are made from the stable ReplicaSet while a Rollout
// is aborted, and whoever waits for the workload is woken.
func TestAbortIsAnotherTemplate(t *testing.T) {
	t.Parallel()
	rollout := func(abort bool) *Workload {
		w, err := SlimWorkload(Rollout(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
			"spec":   map[string]any{"template": map[string]any{"spec": map[string]any{}}},
			"status": map[string]any{"abort": abort, "stableRS": "5f8c", "currentPodHash": "6d4f"},
		}}, settings.Native{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	running, aborted := rollout(false), rollout(true)
	if running.Template() == aborted.Template() {
		t.Errorf("both are made from %+v", running.Template())
	}
	if aborted.SameAs(running) {
		t.Error("an abort wakes nobody")
	}
}

// TestNumberOfTheSameTemplate: a template that came and went in a gap of the watch has left
// another number. What the controller notes of a template that was seen wakes nobody.
func TestNumberOfTheSameTemplate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		observed bool
		number   int64
		same     bool
	}{"Scaled": {true, 1, true}, "CameAndWent": {true, 3, false}, "JustWritten": {false, 2, true}} {
		old, now := &Workload{Revision: 1}, &Workload{Revision: tc.number}
		old.Status.Observed, now.Status.Observed = tc.observed, true
		if got := now.SameAs(old); got != tc.same {
			t.Errorf("%s: the same: %t", name, got)
		}
	}
}

// TestTemplateOfItsReplicaSet: the Deployment controller adds a label.
func TestTemplateOfItsReplicaSet(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	w, err := SlimWorkload(Deployment(), d, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	template := func(key, value string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", key: value}}}
	}
	if !w.HasTemplate(template(appsv1.DefaultDeploymentUniqueLabelKey, "5f8c")) {
		t.Error("the template of its ReplicaSet is not its own")
	}
	if w.HasTemplate(template("tier", "front")) {
		t.Error("another template is its own")
	}
}

// TestReplaced: which revisions a workload had before it took up its template.
func TestReplaced(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	copyOf := func(sum byte, change func(*Workload)) *Workload {
		w := &Workload{Identity: Identity{UID: "1"}, TemplateObject: TemplateObject{WrittenAt: written}, PodTemplate: PodTemplate{templateSum: [32]byte{sum}}, WorkloadHistory: WorkloadHistory{rolledSum: [32]byte{sum}}}
		w.Status.Observed = true
		change(w)
		return w
	}
	number := func(n int64) func(*Workload) { return func(w *Workload) { w.Revision = n } }
	cases := map[string]struct {
		reason   string
		old, now *Workload
		watched  bool
		want     timeline.Origin
	}{
		"Number":     {"a Deployment bears the number", copyOf(1, number(4)), copyOf(2, number(4)), true, timeline.AfterNumber(4)},
		"Name":       {"a StatefulSet the name", copyOf(1, func(w *Workload) { w.Status.UpdateRevision = "db-a" }), copyOf(2, number(0)), true, timeline.AfterName("db-a")},
		"Time":       {"of a DaemonSet the write tells", copyOf(1, number(0)), copyOf(2, number(0)), true, timeline.AfterTime(written)},
		"TimeOfList": {"and a list does not show the write", copyOf(1, number(0)), copyOf(2, number(0)), false, ""},
		"Same":       {"it is the template that it was", copyOf(1, func(w *Workload) { w.Replaced = "3" }), copyOf(1, number(4)), true, "3"},
		"Unobserved": {"a template that its controller never saw has no revision", copyOf(1, func(w *Workload) { w.Replaced, w.Revision, w.Status.Observed = "3", 4, false }), copyOf(2, number(4)), true, "3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.now.Follow(tc.old, mirror.Arrival{Watched: tc.watched}); tc.now.Replaced != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, tc.now.Replaced, tc.want)
			}
		})
	}
}

// TestHasRevision: whether a template that a watch saw being written leads to pods.
func TestHasRevision(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		replaced timeline.Origin
		revision int64
		status   Progress
		want     bool
	}{
		"Made":        {"a new number", "4", 5, Progress{Status: health.Status{Observed: true}}, true},
		"Coming":      {"its controller has not acted yet", "4", 4, Progress{}, true},
		"ChangedBack": {"its controller has acted, and made none", "4", 4, Progress{Status: health.Status{Observed: true}}, false},
		"Paused":      {"its controller is told not to act", "4", 4, Progress{Status: health.Status{Paused: true}}, false},
		"Unknown":     {"nobody saw the template being written", "", 4, Progress{Status: health.Status{Observed: true, Paused: true}}, true},
		"Named":       {"a StatefulSet names another one", "db-a", 0, Progress{Status: health.Status{Observed: true}, UpdateRevision: "db-b"}, true},
		"SameName":    {"or the same", "db-a", 0, Progress{Status: health.Status{Observed: true}, UpdateRevision: "db-a"}, false},
		"Silent":      {"a DaemonSet does not tell", "2026-11-15T03:00:00Z", 0, Progress{Status: health.Status{Observed: true}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&Workload{WorkloadHistory: WorkloadHistory{Replaced: tc.replaced}, Revision: tc.revision, Status: tc.status}).HasRevision(); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestOlderPods: another template than before, whose workload was rolled out completely. If only the next list
// shows it, a further rollout may have begun in between.
func TestOlderPods(t *testing.T) {
	t.Parallel()
	done := health.Status{Observed: true, Counted: true, Counts: health.Counts{Wanted: 2, Existing: 2, Updated: 2, Available: 2}}
	half := done
	half.Counts.Updated = 1
	for name, tc := range map[string]struct {
		reason               string
		before               health.Status
		watched              bool
		generation, revision int64
		want                 bool
	}{
		"Watched":     {"it is the next one", done, true, 6, 3, false},
		"WatchedHalf": {"the rollout before it hadn't ended", half, true, 6, 3, true},
		"Listed":      {"there may have been another one", done, false, 8, 0, true},
		"Generation":  {"nothing else of the workload was written", done, false, 6, 0, false},
		"Half":        {"and the rollout before it hadn't ended", half, false, 6, 0, true},
		"Number":      {"its controller has acted on one template", done, false, 8, 3, false},
		"Numbers":     {"its controller has acted on two", done, false, 8, 4, true},
	} {
		old := &Workload{Identity: Identity{UID: "1", ResourceVersion: "10"}, Revision: 2, PodTemplate: PodTemplate{templateSum: [32]byte{1}}}
		old.Target.Generation, old.Status.Status = 5, tc.before
		old.First(mirror.Arrival{ListVersion: "10"})
		w := &Workload{Identity: Identity{UID: "1", ResourceVersion: "20"}, Revision: tc.revision, PodTemplate: PodTemplate{templateSum: [32]byte{2}}}
		w.Target.Generation, w.Status.Status = tc.generation, done
		if w.Follow(old, mirror.Arrival{Watched: tc.watched}); w.OlderPods != tc.want {
			t.Errorf("%s: %s: older pods %t, want %t", name, tc.reason, w.OlderPods, tc.want)
		}
	}
}

// TestPausedTemplates: pods start from a template that was changed during a pause when
// that ends, also when its revision has been there before and got its number at once. One
// that was changed back by then starts no pod.
func TestPausedTemplates(t *testing.T) {
	t.Parallel()
	type write struct {
		sum      byte
		paused   bool
		revision int64
	}
	cases := map[string]struct {
		reason   string
		writes   []write // the first is listed, each has the next resource version, from 10 on
		want     uint64
		replaced timeline.Origin
	}{
		"Edited":        {"the resume makes the revision", []write{{1, false, 4}, {1, true, 4}, {2, true, 4}, {2, false, 4}}, 13, "4"},
		"Undone":        {"the resume uses an earlier revision again", []write{{1, false, 4}, {1, true, 4}, {2, true, 4}, {2, true, 5}, {2, false, 5}}, 14, "4"},
		"EditedTwice":   {"what came before the first edit tells", []write{{1, false, 4}, {1, true, 4}, {2, true, 5}, {3, true, 6}, {3, false, 6}}, 14, "4"},
		"EditedAtOnce":  {"with the pause itself", []write{{1, false, 4}, {2, true, 4}, {2, false, 4}}, 12, "4"},
		"ResumedByEdit": {"or with the resume", []write{{1, false, 4}, {1, true, 4}, {2, false, 4}}, 12, "4"},
		"StillPaused":   {"not yet", []write{{1, false, 4}, {3, false, 5}, {3, true, 5}, {2, true, 6}}, 11, "4"},
		"EditedBack":    {"nothing starts", []write{{1, false, 4}, {3, false, 5}, {3, true, 5}, {2, true, 6}, {3, true, 7}, {3, false, 7}}, 11, "4"},
		"Untouched":     {"a pause alone starts nothing", []write{{1, false, 4}, {3, false, 5}, {3, true, 5}, {3, false, 5}}, 11, "4"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last *Workload
			for i, write := range tc.writes {
				w := &Workload{Identity: Identity{UID: "1", ResourceVersion: strconv.Itoa(10 + i)}, Revision: write.revision, PodTemplate: PodTemplate{templateSum: [32]byte{write.sum}}}
				w.Status.Observed, w.Status.Paused = true, write.paused
				if last == nil {
					w.First(mirror.Arrival{ListVersion: "10"})
				} else {
					w.Follow(last, mirror.Arrival{Watched: true})
				}
				last = w
			}
			if want := (timeline.Bounds{Min: tc.want, Max: tc.want}); last.TemplateWritten != want {
				t.Errorf("%s: its template is of %+v, want %+v", tc.reason, last.TemplateWritten, want)
			}
			if last.Replaced != tc.replaced {
				t.Errorf("%s: it replaced %q, want %q", tc.reason, last.Replaced, tc.replaced)
			}
		})
	}
}

// TestPausedUnseen: of a pause that begins while no watch looks it is known which template
// the pods were made from when no other revision was current meanwhile.
func TestPausedUnseen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		sum      byte
		revision int64
		want     [32]byte
	}{
		"Untouched": {"a pause restarts no pod", 1, 4, [32]byte{1}},
		"Edited":    {"before the pause or during it", 2, 4, [32]byte{}},
		"Returned":  {"another template came before the pause, and this one is back since", 1, 6, [32]byte{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &Workload{Identity: Identity{UID: "1", ResourceVersion: "10"}, Revision: 4, PodTemplate: PodTemplate{templateSum: [32]byte{1}}, WorkloadHistory: WorkloadHistory{rolledSum: [32]byte{1}}}
			w := &Workload{Identity: Identity{UID: "1", ResourceVersion: "20"}, Revision: tc.revision, PodTemplate: PodTemplate{templateSum: [32]byte{tc.sum}}}
			w.Status.Paused = true
			if w.Follow(old, mirror.Arrival{ListVersion: "20"}); w.rolledSum != tc.want {
				t.Errorf("%s: pods were made from %x, want %x", tc.reason, w.rolledSum[:1], tc.want[:1])
			}
		})
	}
}

// TestDeploymentHealth: the Deployment controller measures the deadline until a rollout is complete.
// Lockstep measures it for pods that crash after that.
func TestDeploymentHealth(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, condition string
		deadline          *int32
		available         int32
		stalled           time.Duration
		want              health.State
	}{
		"Complete":       {"all pods are available", "NewReplicaSetAvailable", nil, 1, time.Hour, health.Done},
		"Crashed":        {"the pod may recover", "NewReplicaSetAvailable", nil, 0, time.Minute, health.Progressing},
		"StaysCrashed":   {"it doesn't recover within the default deadline", "NewReplicaSetAvailable", nil, 0, patience, health.Failed},
		"OwnDeadline":    {"nor within its own", "NewReplicaSetAvailable", new(int32(60)), 0, time.Minute, health.Failed},
		"Starting":       {"its controller measures the deadline", "ReplicaSetUpdated", nil, 0, time.Hour, health.Progressing},
		"ControllerEnds": {"its controller gave up", "ProgressDeadlineExceeded", nil, 0, 0, health.Failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{ProgressDeadlineSeconds: tc.deadline}, Status: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: tc.available,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: tc.condition}},
			}}
			if tc.condition == "ProgressDeadlineExceeded" {
				d.Status.Conditions[0].Status = corev1.ConditionFalse
			}
			if got := health.Of(Deployment().Status(d).Status, tc.stalled); got.State != tc.want {
				t.Errorf("%s: the Deployment is %s (%s), want %s", tc.reason, got.State, got.Message, tc.want)
			}
		})
	}
}
