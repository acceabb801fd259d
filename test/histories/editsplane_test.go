package histories_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/histories"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// editsOnPlane is a control plane on which what the workload references changes. Its controller
// makes the pods, and the test plays the kubelet, between two actions: so it knows what each pod
// has loaded.
type editsOnPlane struct {
	*onPlane

	loads *histories.Loads
	// pods are those that exist, true for one that has started.
	pods map[string]bool
}

func newEditsOnPlane(t *testing.T, h histories.History) *editsOnPlane {
	t.Helper()
	w := &editsOnPlane{loads: histories.NewLoads(), pods: map[string]bool{}}
	w.onPlane = newOnPlane(t, kindOfHistory(h.Kind), func(p *person) actor {
		return newEditor(p, &agenda{random: rand.New(rand.NewPCG(h.Seed, 3))})
	})
	w.observe()
	return w
}

func (w *editsOnPlane) step(a histories.Action) error {
	w.t.Helper()
	isEnd := a.Verb == histories.End
	var err error
	if isEnd || a.Verb == histories.Settle {
		err = w.settle(isEnd)
	} else {
		err = w.do(a)
	}
	if err != nil {
		return err
	}
	w.observe()
	if !w.isUp() || !w.sees() {
		w.loads.Unsee()
		return w.loads.Broken()
	}
	switch {
	case isEnd:
		w.loads.End(w.reason())
	case a.Verb == histories.Settle:
		w.loads.Settle(w.reason())
	}
	return w.loads.Broken()
}

// settle returns when Lockstep and the workload's controller have nothing more to do, or when
// Lockstep was killed at a patch.
func (w *editsOnPlane) settle(isEnd bool) error {
	w.t.Helper()
	if !w.isUp() {
		if err := w.do(histories.Action{Verb: histories.Start}); err != nil {
			return err
		}
	}
	for before := ""; w.isUp() && before != w.observe(); {
		labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
			before = w.observe()
			return w.isRolledOut()
		})
		if err := w.onPlane.settle(); err != nil {
			return err
		}
	}
	if !w.isUp() {
		return nil
	}
	labtest.Eventually(w.t, testkit.Patience, func() (bool, string) {
		w.observe()
		reason := w.reason()
		return reason != "" && w.loads.IsSettled(reason, isEnd), fmt.Sprintf("Lockstep says %s:\n%s", reason, w.loads)
	})
	return nil
}

// observe tells the judge what was written, and plays the kubelet. It returns what there is.
func (w *editsOnPlane) observe() string {
	w.t.Helper()
	w.awaitSeen(histories.Sources()...)
	for _, written := range w.writes.take() {
		o := written.object
		data := dataOf(o)
		if written.gone {
			data = nil
		}
		switch o.(type) {
		case *corev1.ConfigMap:
			w.loads.Write("configmap/"+o.GetName(), data)
		case *corev1.Secret:
			w.loads.Write("secret/"+o.GetName(), data)
		default:
			d := asDeployment(o)
			now := followedOf(w.kind, d, false)
			now.Template = idOf(d.Spec.Template.Annotations)
			w.loads.Workload(now, written.fact.Lockstep)
		}
	}
	w.startPods()
	return fmt.Sprint(w.workload().GetGeneration(), w.pods)
}

// idOf identifies a template, and the pods that were made from it: the rest of it follows from
// its annotations.
func idOf(annotations map[string]string) string {
	text, err := json.Marshal(annotations)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// startPods starts the pods that can start.
func (w *editsOnPlane) startPods() {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
		w.t.Fatal(err)
	}
	gone := w.pods
	w.pods = map[string]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		name := pod.Name + " " + string(pod.UID)
		started, known := gone[name]
		delete(gone, name)
		if !known {
			all, _ := placesOf(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta})
			w.loads.Create(name, idOf(pod.Annotations), all)
		}
		if !started && w.loads.Load(name, histories.Volume, histories.Projected, histories.Init, histories.Env, histories.EnvFrom) {
			w.loads.Run(name)
			w.run(pod)
			started = true
		}
		w.pods[name] = started
	}
	for name := range gone {
		w.loads.Delete(name)
	}
}

// run reports that the containers of a pod run, unless the pod is gone.
func (w *editsOnPlane) run(pod *corev1.Pod) {
	w.t.Helper()
	s, now := &pod.Status, metav1.Now()
	s.Phase, s.StartTime = corev1.PodRunning, &now
	s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, c := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}}})
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	pod.ResourceVersion = "" // its controller may have written it
	err := w.Client.Status().Update(w.t.Context(), pod)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a StatefulSet has made another pod of that name
		w.t.Fatal(err)
	}
}

// isRolledOut reports whether the workload has the pods that it wants, or waits for one that can't
// start.
func (w *editsOnPlane) isRolledOut() (done bool, why string) {
	w.t.Helper()
	o := w.workload()
	d := asDeployment(o)
	want := *d.Spec.Replicas
	total, updated, available := d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas
	if set, ok := o.(*appsv1.StatefulSet); ok {
		total, updated, available = set.Status.Replicas, set.Status.UpdatedReplicas, set.Status.AvailableReplicas
	}
	if d.Spec.Paused || d.Annotations[byHand] == "true" {
		updated = want
	}
	why = fmt.Sprintf("%d pods, %d of the newest template and %d available; %v", total, updated, available, w.pods)
	for _, started := range w.pods {
		if !started {
			return d.Status.ObservedGeneration == d.Generation, why
		}
	}
	return d.Status.ObservedGeneration == d.Generation && total == want && updated == want && available == want && len(w.pods) == int(want), why
}

// TestEditsOnPlane plays histories in which references, the annotation and sources change to the
// built controller: one of a Deployment and one of a StatefulSet, and six of each when
// HISTORIES=all. In the first of each, a source that the template uses since a downtime changes
// after that.
func TestEditsOnPlane(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	further := uint64(0)
	if os.Getenv("HISTORIES") == "all" {
		further = 5
	}
	for kind, first := range map[histories.KindOf]uint64{histories.Deployment: 89, histories.StatefulSet: 21} {
		for _, seed := range seeds(t, first, first+further) {
			t.Run(string(kind)+"/"+strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				h := histories.NewReferences(seed, kind, 12)
				t.Logf("seed %d\n%s", seed, h)
				w := newEditsOnPlane(t, h)
				for i, a := range h.Actions {
					if err := w.step(a); err != nil {
						t.Fatalf("at %d, %s: %v\n\nrepeat it with HISTORY_SEED=%d\n\n%s", i, a, err, seed, w.controller.Stderr())
					}
				}
			})
		}
	}
}
