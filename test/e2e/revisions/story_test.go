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
)

// release is the application of the walk-through: three pods, a canary of one
// that waits for a person, and one ConfigMap.
func release(color, more string) string {
	return fmt.Sprintf(`
appName: demo
replicas: 3
rollout: {preDefinedStrategy: manual-canary-1-pod}
configmaps:
  cm:
    kv_data: {color: %s}
%s`, color, more)
}

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
		w.continuous()
	}
	deploy := func(color string) string {
		job := w.deploy(release(color, "revisions: {attach: "+attach+"}"))
		if attach == "job" {
			w.runJob(job)
		} else if job != nil {
			t.Fatalf("a Job is rendered although the controller attaches: %q", job.args)
		}
		return w.configMapOf(color)
	}

	// 1. Deploy: a ReplicaSet, three pods, a ConfigMap that belongs to it.
	red := deploy("red")
	rsRed := w.awaitReplicaSet(red)
	w.awaitOwners(map[string][]string{red: {rsRed.Name}})
	w.awaitPods(map[string]int{red: 3})
	if path := w.pods(red)[0].Spec.Containers[0].VolumeMounts[0].MountPath; path != "/etc/kubernetes/configmaps" {
		t.Errorf("mounted at %s", path)
	}

	// 2. Change: a second ReplicaSet with one pod, and its own ConfigMap.
	blue := deploy("blue")
	rsBlue := w.awaitReplicaSet(blue)
	w.awaitPause()
	w.awaitOwners(map[string][]string{red: {rsRed.Name}, blue: {rsBlue.Name}})
	w.awaitPods(map[string]int{red: 2, blue: 1})

	// A node is taken away: the replacement of an old pod mounts the old ConfigMap.
	victim := w.pods(red)[0]
	w.delete(&victim)
	w.awaitPods(map[string]int{red: 2, blue: 1})
	for _, pod := range w.pods(red) {
		if pod.Name == victim.Name {
			t.Errorf("pod %s was not replaced", pod.Name)
		}
	}

	// 3. Promote.
	w.promote()
	w.awaitPods(map[string]int{red: 0, blue: 3})

	// 4. and 5. Change again, promote again.
	green := deploy("green")
	rsGreen := w.awaitReplicaSet(green)
	w.promote()
	w.awaitPods(map[string]int{red: 0, blue: 0, green: 3})
	w.awaitOwners(map[string][]string{red: {rsRed.Name}, blue: {rsBlue.Name}, green: {rsGreen.Name}})

	// 6. The old ReplicaSets go, and with them exactly their ConfigMaps.
	w.delete(&rsRed)
	w.delete(&rsBlue)
	w.awaitOwners(map[string][]string{green: {rsGreen.Name}})
	w.awaitPods(map[string]int{green: 3})
}

// TestAbortKeepsBothConfigurations: after an abort the old ReplicaSet has all
// pods again and its ConfigMap; that of the aborted one stays with its revision.
func TestAbortKeepsBothConfigurations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.continuous()
	w.deploy(release("red", "revisions: {attach: controller}"))
	red := w.configMapOf("red")
	w.awaitPods(map[string]int{red: 3})
	w.deploy(release("blue", "revisions: {attach: controller}"))
	blue := w.configMapOf("blue")
	w.awaitPause()
	w.awaitPods(map[string]int{red: 2, blue: 1})

	w.abort()
	w.awaitPods(map[string]int{red: 3, blue: 0})
	w.awaitOwners(map[string][]string{red: {w.awaitReplicaSet(red).Name}, blue: {w.awaitReplicaSet(blue).Name}})
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
				w.continuous()
			}
			for _, tag := range []string{"one", "two"} {
				job := w.deploy(release("red", fmt.Sprintf("image: {tag: %q}\nrevisions: {attach: %s}\nworkload: {kind: Deployment}", tag, attach)))
				if attach == "job" {
					w.runJob(job)
				}
			}
			red := w.configMapOf("red")
			w.eventually(func() (bool, string) { return len(w.replicaSets()) == 2, "want two ReplicaSets" })
			both := w.replicaSets()
			w.awaitOwners(map[string][]string{red: {both[0].Name, both[1].Name}})

			w.delete(&both[0])
			w.awaitOwners(map[string][]string{red: {both[1].Name}})
			w.awaitPods(map[string]int{red: 3})
		})
	}
}

// TestHistoryLimitOfOne: with one old revision kept, the ConfigMap of each older
// one is collected, and never one that a living revision needs.
func TestHistoryLimitOfOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment, revisionHistoryLimit: 1}"
	names := map[string]string{}
	for _, color := range []string{"red", "blue", "green"} {
		w.deploy(release(color, more))
		names[color] = w.configMapOf(color)
		w.awaitPods(map[string]int{names[color]: 3})
		// Owned before the next one comes, as between two deploys of a person.
		w.eventually(func() (bool, string) {
			return len(w.configMaps()[names[color]]) == 1, "not owned: " + names[color]
		})
	}
	w.awaitOwners(map[string][]string{
		names["blue"]:  {w.awaitReplicaSet(names["blue"]).Name},
		names["green"]: {w.awaitReplicaSet(names["green"]).Name},
	})
}

// TestHelmKeepsAndRollsBack: an upgrade of a plain Deployment leaves the earlier
// ConfigMap, and "helm rollback" finds it again.
func TestHelmKeepsAndRollsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment}"
	w.deploy(release("red", more))
	red := w.configMapOf("red")
	w.awaitPods(map[string]int{red: 3})
	w.deploy(release("blue", more))
	blue := w.configMapOf("blue")
	w.awaitPods(map[string]int{red: 0, blue: 3})
	owners := map[string][]string{red: {w.awaitReplicaSet(red).Name}, blue: {w.awaitReplicaSet(blue).Name}}
	w.awaitOwners(owners)

	w.helm.Run(t, "rollback", "demo", "1", "-n", w.namespace, "--no-hooks")
	w.awaitPods(map[string]int{red: 3, blue: 0})
	w.awaitOwners(owners)

	w.helm.Run(t, "uninstall", "demo", "-n", w.namespace, "--no-hooks")
	w.awaitOwners(map[string][]string{})
}

// TestUndoFindsItsConfigMap: "kubectl rollout undo" puts the old template back; the
// old ReplicaSet and its ConfigMap are still there.
func TestUndoFindsItsConfigMap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.continuous()
	const more = "revisions: {attach: controller}\nworkload: {kind: Deployment}"
	w.deploy(release("red", more))
	red := w.configMapOf("red")
	w.awaitPods(map[string]int{red: 3})
	w.deploy(release("blue", more))
	blue := w.configMapOf("blue")
	w.awaitPods(map[string]int{red: 0, blue: 3})

	old := w.awaitReplicaSet(red)
	w.undoTo(old)
	w.awaitPods(map[string]int{red: 3, blue: 0})
	w.awaitOwners(map[string][]string{red: {old.Name}, blue: {w.awaitReplicaSet(blue).Name}})
}

// undoTo sends the request of "kubectl rollout undo --to-revision": the ReplicaSet's
// template without the hash that the Deployment's controller adds, and its
// annotations but for those that are about this very object.
func (w *world) undoTo(rs appsv1.ReplicaSet) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.client.Get(w.t.Context(), w.key("demo"), d); err != nil {
		w.t.Fatal(err)
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
		err = w.client.Patch(w.t.Context(), d, client.RawPatch(types.JSONPatchType, body))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestOwnerLooksAsBefore: the drop-in writes the owner reference of the
// walk-through, field by field.
func TestOwnerLooksAsBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deploy(release("red", "revisions: {attach: controller}"))
	red := w.configMapOf("red")
	rs := w.awaitReplicaSet(red)
	w.runAsBefore("-rollout", "demo", "-namespace", w.namespace, "-configmaps", red)
	yes := true
	want := []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if diff := cmp.Diff(want, w.configMap(red).OwnerReferences); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}
}
