package revisions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// kindOfWorkload is a kind whose revisions the real controllers make.
type kindOfWorkload struct {
	apiVersion string
	kind       string
	// spec is everything but the selector and the template.
	spec map[string]any
	// owner is the kind of its revisions.
	owner string
}

func kindsOfWorkloads() []kindOfWorkload {
	none := map[string]any{"replicas": int64(0)}
	return []kindOfWorkload{
		{"apps/v1", "Deployment", none, "ReplicaSet"},
		{"apps/v1", "StatefulSet", none, "ControllerRevision"},
		{"apps/v1", "DaemonSet", map[string]any{}, "ControllerRevision"},
		{"argoproj.io/v1alpha1", "Rollout", map[string]any{"replicas": int64(0), "strategy": map[string]any{"canary": map[string]any{}}}, "ReplicaSet"},
		{"batch/v1", "CronJob", map[string]any{"schedule": "0 0 1 1 *", "suspend": true}, "CronJob"},
	}
}

func (k kindOfWorkload) name() string { return strings.ToLower(k.kind) }

// configMap is the name of one of the workload's ConfigMaps.
func (k kindOfWorkload) configMap(version string) string { return k.name() + "-" + version }

// using is a specification whose pods mount a ConfigMap.
func (k kindOfWorkload) using(configMap string) map[string]any {
	labels := map[string]any{"app": k.name()}
	pod := map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "c"}},
		"volumes":    []any{map[string]any{"name": "v", "configMap": map[string]any{"name": configMap}}},
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}
	if k.kind == "CronJob" {
		pod["restartPolicy"] = "Never"
		return map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
	}
	return map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template}
}

func (w *world) object(k kindOfWorkload) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(k.apiVersion)
	o.SetKind(k.kind)
	o.SetNamespace(w.Namespace)
	o.SetName(k.name())
	return o
}

// revisioned makes a ConfigMap that carries the label.
func (w *world) revisioned(name string) {
	w.T.Helper()
	mustCreate(w.T.Context(), w.T, w.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: name, Labels: map[string]string{"app": "demo", "lockstep.dev/revisioned": "true"},
	}})
}

// release gives every workload its next ConfigMap and waits until the controllers
// of Kubernetes and Argo have made the revisions.
func (w *world) release(version string) {
	w.T.Helper()
	for _, k := range kindsOfWorkloads() {
		w.revisioned(k.configMap(version))
		o := w.object(k)
		spec := k.using(k.configMap(version))
		if version == "one" {
			maps.Copy(spec, k.spec)
			o.Object["spec"] = spec
			mustCreate(w.T.Context(), w.T, w.Client, o)
		} else {
			body, err := json.Marshal(map[string]any{"spec": spec})
			if err == nil {
				err = w.Client.Patch(w.T.Context(), o, client.RawPatch(types.MergePatchType, body))
			}
			if err != nil {
				w.T.Fatal(err)
			}
		}
		w.awaitRevision(k, version)
	}
}

func (w *world) awaitRevision(k kindOfWorkload, version string) {
	w.T.Helper()
	if k.owner == k.kind {
		return
	}
	w.Eventually(func() (bool, string) {
		var list client.ObjectList = &appsv1.ReplicaSetList{}
		if k.owner == "ControllerRevision" {
			list = &appsv1.ControllerRevisionList{}
		}
		if err := w.Client.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		text, err := json.Marshal(list)
		return err == nil && strings.Contains(string(text), k.configMap(version)), "no revision uses " + k.configMap(version)
	})
}

// startJob makes a Job of the CronJob as it is now, which does not end.
func (w *world) startJob(name string) {
	w.T.Helper()
	cj := &batchv1.CronJob{}
	if err := w.Client.Get(w.T.Context(), w.Key("cronjob"), cj); err != nil {
		w.T.Fatal(err)
	}
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cj, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
	}, Spec: cj.Spec.JobTemplate.Spec}
	job.Spec.Suspend = &yes
	mustCreate(w.T.Context(), w.T, w.Client, job)
}

// ownersOf are a ConfigMap's owners as Kind/name.
func (w *world) ownersOf(configMap string) []string {
	w.T.Helper()
	var owners []string
	for _, owner := range w.configMap(configMap).OwnerReferences {
		owners = append(owners, owner.Kind+"/"+owner.Name)
	}
	return owners
}

// awaitEveryOwner waits until each ConfigMap of these versions has one owner, a
// revision of its own workload that no other ConfigMap has.
func (w *world) awaitEveryOwner(versions ...string) {
	w.T.Helper()
	for _, k := range kindsOfWorkloads() {
		seen := map[string]bool{}
		for _, version := range versions {
			owner := k.owner + "/" + k.name()
			if k.kind == "CronJob" && version == "one" {
				owner = "Job/running"
			}
			var got []string
			w.Eventually(func() (bool, string) {
				got = w.ownersOf(k.configMap(version))
				return len(got) == 1 && strings.HasPrefix(got[0], owner), fmt.Sprintf("%s belongs to %v, want one %s", k.configMap(version), got, owner)
			})
			if k.kind != "CronJob" && seen[got[0]] {
				w.T.Errorf("%s and another one belong to %s", k.configMap(version), got[0])
			}
			seen[got[0]] = true
		}
	}
}

// TestCatchesUp: two revisions of every kind are made before the controller is
// started for the first time, a third one after it was killed.
func TestCatchesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.release("one")
	w.startJob("running")
	w.release("two")

	controller := w.Continuous()
	w.awaitEveryOwner("one", "two")

	controller.Signal(t, syscall.SIGKILL)
	<-controller.Done()
	w.release("three")
	if got := w.ownersOf("deployment-three"); got != nil {
		t.Fatalf("attached to %v although nobody runs; the test shows nothing", got)
	}
	w.Continuous()
	w.awaitEveryOwner("one", "two", "three")
}

// TestObservedNamespace: a namespace that asks to observe, be it badly, gets no
// owner written, and they are written when it no longer asks.
func TestObservedNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.observe(`"yes"`)
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("red")
	rs := w.AwaitReplicaSet(red)
	w.Continuous()
	w.Eventually(func() (bool, string) {
		list := &corev1.EventList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		var reasons []string
		for _, e := range list.Items {
			if e.InvolvedObject.Name == red && e.Reason == "WouldAttach" {
				return true, ""
			}
			reasons = append(reasons, e.InvolvedObject.Name+" "+e.Reason)
		}
		return false, fmt.Sprintf("there is no event WouldAttach for %s, only %q", red, reasons)
	})
	w.AwaitOwners(map[string][]string{red: {}})

	w.observe("null")
	w.AwaitOwners(map[string][]string{red: {rs.Name}})
}

func (w *world) observe(value string) {
	w.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	body := `{"metadata":{"annotations":{"lockstep.dev/observe":` + value + `}}}`
	if err := w.Client.Patch(w.T.Context(), ns, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.T.Fatal(err)
	}
}
