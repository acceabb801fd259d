// Package revisions_test plays the life of revisioned configuration on a real
// control plane, with the real Argo Rollouts controller, Helm and our chart.
package revisions_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// TestWalkThrough follows the walk-through of revisioned ConfigMaps step by step,
// once with the controller and once with the Job that the chart renders.
func TestWalkThrough(t *testing.T) {
	t.Parallel()
	for name, attach := range map[string]string{"the controller attaches": "controller", "the job attaches": "job"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walkThrough(t, attach)
		})
	}
}

func walkThrough(t *testing.T, attach string) {
	t.Helper()
	w := newWorld(t)
	if attach == "controller" {
		w.Continuous()
	}
	w.WalkThrough(func(color string) {
		job := w.Deploy(walkthrough.Release(color, "revisions: {attach: "+attach+"}"))
		if attach == "job" {
			w.RunJob(job)
		} else if job != nil {
			t.Fatalf("a Job is rendered although the controller attaches: %q", job.Args)
		}
	}, func(string, string) {}) // a fake node's pods have no inside
}

// TestAbortKeepsBothConfigurations: after an abort the old ReplicaSet has all
// pods again and its ConfigMap; that of the aborted one stays with its revision.
func TestAbortKeepsBothConfigurations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Continuous()
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("red")
	w.AwaitPods(map[string]int{red: 3})
	w.Deploy(walkthrough.Release("blue", "revisions: {attach: controller}"))
	blue := w.ConfigMapOf("blue")
	w.AwaitPause()
	w.AwaitPods(map[string]int{red: 2, blue: 1})

	w.Abort()
	w.AwaitPods(map[string]int{red: 3, blue: 0})
	w.AwaitOwners(map[string][]string{red: {w.AwaitReplicaSet(red).Name}, blue: {w.AwaitReplicaSet(blue).Name}})
}

// TestImageOnlyChangeSharesTheConfigMap: two ReplicaSets, one ConfigMap, which
// survives the deletion of either.
func TestImageOnlyChangeSharesTheConfigMap(t *testing.T) {
	t.Parallel()
	for name, attach := range map[string]string{"the controller attaches": "controller", "the job attaches": "job"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if attach == "controller" {
				w.Continuous()
			}
			for i, tag := range []string{"one", "two"} {
				job := w.Deploy(walkthrough.Release("red", fmt.Sprintf("image: {tag: %q}\nrevisions: {attach: %s}\nworkload: {kind: Deployment}", tag, attach)))
				if attach == "job" {
					w.RunJob(job)
				}
				w.Eventually(func() (bool, string) {
					n := len(w.ReplicaSets())
					return n == i+1, fmt.Sprintf("%d ReplicaSets after %d images, want one for each", n, i+1)
				})
			}
			red := w.ConfigMapOf("red")
			both := w.ReplicaSets()
			w.AwaitOwners(map[string][]string{red: {both[0].Name, both[1].Name}})

			w.Delete(&both[0])
			w.AwaitOwners(map[string][]string{red: {both[1].Name}})
			w.AwaitPods(map[string]int{red: 3})
		})
	}
}

// TestHistoryLimitOfOne: with one old revision kept, the ConfigMap of each older
// one is collected, and never one that a living revision needs.
func TestHistoryLimitOfOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment, revisionHistoryLimit: 1}"
	names := map[string]string{}
	for _, color := range []string{"red", "blue", "green"} {
		w.Deploy(walkthrough.Release(color, more))
		names[color] = w.ConfigMapOf(color)
		w.AwaitPods(map[string]int{names[color]: 3})
		// Owned before the next one comes, as between two deploys of a person.
		w.Eventually(func() (bool, string) {
			return len(w.ConfigMaps()[names[color]]) == 1, "not owned: " + names[color]
		})
	}
	w.AwaitOwners(map[string][]string{
		names["blue"]:  {w.AwaitReplicaSet(names["blue"]).Name},
		names["green"]: {w.AwaitReplicaSet(names["green"]).Name},
	})
}

// TestHelmKeepsAndRollsBack: an upgrade of a plain Deployment leaves the earlier
// ConfigMap, and "helm rollback" finds it again.
func TestHelmKeepsAndRollsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment}"
	w.Deploy(walkthrough.Release("red", more))
	red := w.ConfigMapOf("red")
	w.AwaitPods(map[string]int{red: 3})
	w.Deploy(walkthrough.Release("blue", more))
	blue := w.ConfigMapOf("blue")
	w.AwaitPods(map[string]int{red: 0, blue: 3})
	owners := map[string][]string{red: {w.AwaitReplicaSet(red).Name}, blue: {w.AwaitReplicaSet(blue).Name}}
	w.AwaitOwners(owners)

	w.Helm.Run(t, "rollback", "demo", "1", "-n", w.Namespace, "--no-hooks")
	w.AwaitPods(map[string]int{red: 3, blue: 0})
	w.AwaitOwners(owners)

	w.Helm.Run(t, "uninstall", "demo", "-n", w.Namespace, "--no-hooks")
	w.AwaitOwners(map[string][]string{})
}

// TestUndoFindsItsConfigMap: "kubectl rollout undo" puts the old template back; the
// old ReplicaSet and its ConfigMap are still there.
func TestUndoFindsItsConfigMap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment}"
	w.Deploy(walkthrough.Release("red", more))
	red := w.ConfigMapOf("red")
	w.AwaitPods(map[string]int{red: 3})
	w.Deploy(walkthrough.Release("blue", more))
	blue := w.ConfigMapOf("blue")
	w.AwaitPods(map[string]int{red: 0, blue: 3})

	old := w.AwaitReplicaSet(red)
	w.undoTo(old)
	w.AwaitPods(map[string]int{red: 3, blue: 0})
	w.AwaitOwners(map[string][]string{red: {old.Name}, blue: {w.AwaitReplicaSet(blue).Name}})
}

// undoTo sends the request of "kubectl rollout undo --to-revision": the ReplicaSet's
// template without the hash that the Deployment's controller adds, and its
// annotations but for those that are about this very object.
func (w *world) undoTo(rs appsv1.ReplicaSet) {
	w.T.Helper()
	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.T.Context(), w.Key("demo"), d); err != nil {
		w.T.Fatal(err)
	}
	own := []string{
		corev1.LastAppliedConfigAnnotation, "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas", "deprecated.deployment.rollback.to",
	}
	annotations := map[string]string{}
	for name, value := range d.Annotations {
		if slices.Contains(own, name) {
			annotations[name] = value
		}
	}
	for name, value := range rs.Annotations {
		if !slices.Contains(own, name) {
			annotations[name] = value
		}
	}
	template := rs.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	body, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/template", "value": template},
		{"op": "replace", "path": "/metadata/annotations", "value": annotations},
	})
	if err == nil {
		err = w.Client.Patch(w.T.Context(), d, client.RawPatch(types.JSONPatchType, body))
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestOwnerLooksAsBefore: with the arguments of the published Job, the drop-in writes the
// owner reference of the walk-through, field by field.
func TestOwnerLooksAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Deploy(walkthrough.Release("red", "revisions: {attach: controller}"))
	red := w.ConfigMapOf("red")
	rs := w.AwaitReplicaSet(red)
	w.runAsBefore(publishedArgs(w, red)...)
	yes := true
	want := []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if diff := cmp.Diff(want, w.configMap(red).OwnerReferences); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}
}
