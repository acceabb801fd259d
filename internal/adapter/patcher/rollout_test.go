package patcher

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// asCached reads an object as the cache would.
func asCached(t *testing.T, w *testkit.World, kind kube.Kind, o client.Object) *kube.Workload {
	t.Helper()
	w.Get(t, o.GetName(), o)
	workload, err := kube.SlimWorkload(kind, o, settings.Native{})
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

// order gives a workload one ConfigMap at a version.
func order(version string) input.Order {
	return input.Order{All: []input.Finding{{ID: input.ConfigMap("app"), Versions: input.Versions{Shows: input.Tracked(version)}, Live: true}}}
}

func TestMoveHasAPrecondition(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	patcher := NewPatcher(w.Client, AsAnnotation)
	seen := asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web))

	w.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"metadata":{"labels":{"somebody":"else"}}}`)
	if _, err := patcher.RollOut(t.Context(), seen, order("1111111111")); !apierrors.IsConflict(err) {
		t.Errorf("a stale decision answers %v, want a conflict", err)
	}
	if shown := w.Shown(t, testkit.Web); shown != "" {
		t.Fatalf("a refused patch shows %q", shown)
	}

	current := moved(t, w, AsAnnotation)
	d := w.Deployment(t, testkit.Web)
	if got := d.Spec.Template.Annotations; len(got) != 1 || got[settings.Inputs] != "configmap/app~1111111111" {
		t.Errorf("the template's annotations are %v", got)
	}
	if _, err := patcher.RollOut(t.Context(), current, order("2222222222")); !apierrors.IsConflict(err) {
		t.Errorf("the same decision carried out twice answers %v, want a conflict", err)
	}
}

// moved gives the app a version, on what it is by then: the controllers of the
// cluster write its status meanwhile. It returns what the move was decided on.
func moved(t *testing.T, w *testkit.World, form Form) *kube.Workload {
	t.Helper()
	var current *kube.Workload
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		current = asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web))
		at, err := NewPatcher(w.Client, form).RollOut(t.Context(), current, order("1111111111"))
		if err != nil && !apierrors.IsConflict(err) || err == nil && at.At.IsZero() {
			t.Fatalf("moved at %s, error %v", at.At, err)
		}
		return err == nil, fmt.Sprintf("every move fails: %v", err)
	})
	return current
}

// TestWhoWroteTheVersions: somebody who writes others takes the template over, also
// when nothing but our versions had been written there before.
func TestWhoWroteTheVersions(t *testing.T) {
	t.Parallel()
	annotation := func(d *appsv1.Deployment, value string) { d.Spec.Template.Annotations[settings.Inputs] = value }
	variable := func(d *appsv1.Deployment, value string) { d.Spec.Template.Spec.Containers[0].Env[0].Value = value }
	for name, tc := range map[string]struct {
		form Form
		set  func(*appsv1.Deployment, string)
	}{"Annotation": {AsAnnotation, annotation}, "Variable": {AsVariable, variable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t)
			w.CreateApp(t)
			moved(t, w, tc.form)
			if at := asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web)).RolledOutAt; at.IsZero() {
				t.Fatal("our own patch is not known as one")
			}
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				d := w.Deployment(t, testkit.Web)
				tc.set(d, "configmap/app~0000000000")
				err := w.Client.Update(t.Context(), d)
				return err == nil, fmt.Sprintf("every write fails: %v", err)
			})
			if at := asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web)).RolledOutAt; !at.IsZero() {
				t.Errorf("what somebody else wrote counts as ours of %s", at)
			}
			moved(t, w, tc.form)
			if at := asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web)).RolledOutAt; at.IsZero() {
				t.Error("our next patch is not known as one")
			}
		})
	}
}

// TestMoveSparesANamesake: the decision was made on a Deployment that was deleted
// and made anew meanwhile.
func TestMoveSparesANamesake(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	seen := asCached(t, w, kube.Deployment(), w.Deployment(t, testkit.Web))
	if err := w.Client.Delete(t.Context(), w.Deployment(t, testkit.Web)); err != nil {
		t.Fatal(err)
	}
	w.Create(t, testkit.Deployment(testkit.Web, "app", "db"))
	if _, err := NewPatcher(w.Client, AsAnnotation).RollOut(t.Context(), seen, order("1111111111")); !apierrors.IsConflict(err) {
		t.Errorf("a decision on another object of the name answers %v, want a conflict", err)
	}
	if shown := w.Shown(t, testkit.Web); shown != "" {
		t.Errorf("the namesake shows %q", shown)
	}
}

// TestTouchSparesANamesake: a pod that was made anew meanwhile mounts what is new by
// itself, so that it is another one is no failure.
func TestTouchSparesANamesake(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	pod := func() *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
		p.Name = "web-0"
		// On a node, what acts for its kubelet here would end the pod, which it does by name.
		p.Spec.SchedulerName = "nobody"
		w.Create(t, p)
		return p
	}
	pods := NewPods(w.Client)
	seen := newPod(pod())
	if err := pods.Touch(t.Context(), seen, "configmap/app~1111111111"); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web-0"}}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	namesake := pod()
	if err := pods.Touch(t.Context(), seen, "configmap/app~2222222222"); !apierrors.IsConflict(err) {
		t.Errorf("a touch of another pod of the name answers %v, want a conflict", err)
	}
	if w.Get(t, "web-0", namesake); len(namesake.Annotations) > 0 {
		t.Errorf("the namesake has the annotations %v", namesake.Annotations)
	}
}

// TestMoveTellsWhatItLedTo: the template that the answer names is the one that a watch
// shows, whatever form the two have; else our own patch would be another writer's.
func TestMoveTellsWhatItLedTo(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	pod := testkit.Deployment("all", "app", "db").Spec
	full := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Selector.MatchLabels}, Spec: *pod.Template.Spec.DeepCopy()}
	full.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1024Mi")}
	full.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, tc := range []struct {
		kind   kube.Kind
		object client.Object
	}{
		{kube.Deployment(), &appsv1.Deployment{ObjectMeta: meta("deployment"), Spec: appsv1.DeploymentSpec{Replicas: pod.Replicas, Selector: pod.Selector, Template: full}}},
		{kube.StatefulSet(), &appsv1.StatefulSet{ObjectMeta: meta("statefulset"), Spec: appsv1.StatefulSetSpec{Replicas: pod.Replicas, Selector: pod.Selector, Template: full}}},
		{kube.DaemonSet(), &appsv1.DaemonSet{ObjectMeta: meta("daemonset"), Spec: appsv1.DaemonSetSpec{Selector: pod.Selector, Template: full}}},
	} {
		w.Create(t, tc.object)
		var told kube.RolledOut
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			var err error
			told, err = NewPatcher(w.Client, AsAnnotation).RollOut(t.Context(), asCached(t, w, tc.kind, tc.object), order("1111111111"))
			return err == nil, fmt.Sprintf("every move fails: %v", err)
		})
		// The revision number is the workload's controller's, which may have acted since.
		seen := asCached(t, w, tc.kind, tc.object).Template()
		if told.Template.Generation != seen.Generation || told.Template.Sum != seen.Sum || told.Template.Number > seen.Number {
			t.Errorf("%s: the answer tells of %+v, a watch of %+v", tc.kind.Kind, told.Template, seen)
		}
	}
}
