package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestImageStory: a container runs the newest image of its range by digest, and a push
// of a newer one rolls it out.
func TestImageStory(t *testing.T) {
	t.Parallel()
	w, registry := testkit.NewWorld(t), testkit.StartRegistry(t)
	first := registry.Push(t, "app", "1.0")
	w.CreateImageUser(t, testkit.Web, registry, "app", "1.*")
	inprocess.StartReady(t, w, append(registry.Flags(), "--quiet", testkit.Quiet)...)
	awaitImage(t, w, first)

	second := registry.Push(t, "app", "1.1")
	awaitImage(t, w, second)
	w.AwaitEvent(t, testkit.Web, "Normal Reloaded", "image/app")
}

func awaitImage(t *testing.T, w *testkit.World, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := w.Deployment(t, testkit.Web).Spec.Template.Spec.Containers[0].Image
		return got == want, fmt.Sprintf("the container runs %s, want %s; events %q", got, want, w.Events(t, testkit.Web))
	})
}

// TestRevisionStory: each ReplicaSet keeps the ConfigMap that it was made with, whether the
// controller or a job attaches it, and Kubernetes removes the ConfigMap with the ReplicaSet.
func TestRevisionStory(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	old := revisioned("app-1")
	w.Create(t, old, testkit.Deployment(testkit.Web, "app-1", ""))
	inprocess.StartReady(t, w, "--reload=false")
	first := awaitOwner(t, w, "app-1")

	next := testkit.ConfigMap("app-2", "key", "2") // without the label: the job attaches it
	w.Create(t, next)
	d := w.Deployment(t, testkit.Web)
	d.Spec.Template.Spec.Volumes[0].ConfigMap.Name = "app-2"
	if err := w.Client.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := inprocess.Run(t, "attach", "deployment/"+testkit.Web, "configmap/app-2", "--namespace", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig())
	if code != 0 {
		t.Fatalf("lockstep attach: exit code %d\n%s", code, stderr)
	}
	if second := awaitOwner(t, w, "app-2"); second == first {
		t.Errorf("both ConfigMaps belong to the ReplicaSet %s", first)
	}

	set := &appsv1.ReplicaSet{}
	w.Get(t, first, set)
	if err := w.Client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "app-1"}, &corev1.ConfigMap{})
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprintf("configmap/app-1 still exists after its ReplicaSet was deleted (error %v)", err)
	})
	w.Get(t, "app-2", next)
}

func revisioned(name string) *corev1.ConfigMap {
	cm := testkit.ConfigMap(name, "key", "1")
	cm.Labels = map[string]string{settings.Revisioned: "true"}
	return cm
}

// awaitOwner waits until a ConfigMap belongs to a ReplicaSet, and returns its name.
func awaitOwner(t *testing.T, w *testkit.World, configMap string) string {
	t.Helper()
	var owner string
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		cm := &corev1.ConfigMap{}
		w.Get(t, configMap, cm)
		if len(cm.OwnerReferences) != 1 || cm.OwnerReferences[0].Kind != "ReplicaSet" {
			return false, fmt.Sprintf("configmap/%s has the owners %v, want one ReplicaSet", configMap, cm.OwnerReferences)
		}
		owner = cm.OwnerReferences[0].Name
		return strings.HasPrefix(owner, testkit.Web), fmt.Sprintf("configmap/%s belongs to ReplicaSet %s, want one of Deployment %s", configMap, owner, testkit.Web)
	})
	return owner
}
