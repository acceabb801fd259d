package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const (
	// hashTwo and hashThree are the SHA-1 of "file=two;greeting=bonjour" and of
	// "file=three;greeting=hola".
	hashTwo   = "139539c519a7b28cd6406e55beeab1993cebac14"
	hashThree = "cf0a655aadae6564ea8524ba89a6f6c734fb1167"
)

// seedsOfReloader plays two installations of Stakater Reloader's chart. One follows every
// namespace, so the application of the other one names its ConfigMap by a key of its own.
func seedsOfReloader(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	for name, play := range map[string]func(*testing.T, *testkit.World, string){
		"defaults": reloaderWithDefaults, "two replicas in one namespace": reloaderHandsOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, testkit.NewWorldOn(t, w.Cluster), image)
		})
	}
}

// reloaderWithDefaults: Reloader is in a namespace of its own and writes a variable.
func reloaderWithDefaults(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	there := &testkit.World{Cluster: w.Cluster, Client: w.Client, Namespace: w.Own}
	installReloader(t, w, there, seed(t, "reloader", reloaderImage, image, "RELEASED-TO", there.Namespace), map[string]string{"reloader.stakater.com/auto": "true"})

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	env := w.Deployment(t, "app").Spec.Template.Spec.Containers[0].Env
	if want := (corev1.EnvVar{Name: "STAKATER_APP_CONFIGMAP", Value: hashTwo}); !slices.Contains(env, want) {
		t.Errorf("the container has the variables %+v, want %+v among them", env, want)
	}
	awaitReloadedEvent(t, w)
	awaitReloaderReady(t, there)
	wantNothingForbidden(t, there)
	wantPulled(t, w, there.Namespace, image)
}

// reloaderHandsOver: Reloader follows its own namespace and writes an annotation. A change that is
// made when the leader's pod is deleted is delivered by another pod.
func reloaderHandsOver(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	installReloader(t, w, w, seed(t, "reloader-ha", reloaderImage, image, "RELEASED-TO", w.Namespace), map[string]string{"example.com/configmaps": "app"})

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	wantReloadedFrom(t, w, hashTwo)
	awaitReloadedEvent(t, w)
	wantNothingForbidden(t, w)

	first := awaitLeader(t, w, "")
	leader := &corev1.Pod{}
	w.Get(t, first, leader)
	if err := w.Client.Delete(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	change(t, w, "hola", "three")
	awaitOutput(t, w, "env hola", "file three")
	wantReloadedFrom(t, w, hashThree)
	awaitLeader(t, w, first)
	awaitReloaderReady(t, w)
	wantNothingForbidden(t, w)
	if n := w.Revisions(t, "app"); n != 3 {
		t.Errorf("%d revisions after two changes, want the first one and one for each", n)
	}
}

// reloaderImage is the image in the manifests.
const reloaderImage = "ghcr.io/stakater/reloader:v1.4.21"

// installReloader runs the application with annotations, and Reloader in its own world until it
// knows which version the application began with.
func installReloader(t *testing.T, w, there *testkit.World, manifests string, annotations map[string]string) {
	t.Helper()
	w.Create(t, config("hello", "one"), application(annotations))
	for _, o := range helmtest.Objects(t, manifests) {
		there.Create(t, o)
	}
	awaitOutput(t, w, "env hello", "file one")
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		list := &corev1.ConfigMapList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(there.Namespace), client.MatchingLabels{settings.StateLabel: "reloader"}); err != nil {
			return false, err.Error()
		}
		known := slices.ContainsFunc(list.Items, func(o corev1.ConfigMap) bool { return strings.Contains(o.Data[w.Namespace], "CONFIGMAP app ") })
		return known, fmt.Sprintf("the ConfigMap is not on record in %+v; %s", list.Items, everyState(t, there))
	})
}

// wantReloadedFrom: the annotation says that the ConfigMap caused the rollout.
func wantReloadedFrom(t *testing.T, w *testkit.World, hash string) {
	t.Helper()
	got := w.Deployment(t, "app").Spec.Template.Annotations["reloader.stakater.com/last-reloaded-from"]
	want := fmt.Sprintf(`{"type":"CONFIGMAP","name":"app","namespace":%q,"hash":%q,"containerRefs":["app"],"observedAt":`, w.Namespace, hash)
	if !strings.HasPrefix(got, want) {
		t.Errorf("the annotation is %q, want it to begin with %q", got, want)
	}
}

// awaitReloadedEvent waits for the event of the original on the Deployment.
func awaitReloadedEvent(t *testing.T, w *testkit.World) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &corev1.EventList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		found := slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Type == corev1.EventTypeNormal && e.Reason == "Reloaded" && e.Source.Component == "reloader-configmaps" &&
				e.InvolvedObject.Kind == "Deployment" && e.InvolvedObject.Name == "app"
		})
		return found, fmt.Sprintf("the Deployment has no event Reloaded among %+v", list.Items)
	})
}

// awaitLeader waits until a pod, other than the given one, holds the original's lease.
func awaitLeader(t *testing.T, w *testkit.World, other string) (name string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		lease := &coordinationv1.Lease{}
		w.Get(t, "stakater-reloader-lock", lease)
		if name = ""; lease.Spec.HolderIdentity != nil {
			name = *lease.Spec.HolderIdentity
		}
		return name != "" && name != other, fmt.Sprintf("the lease is held by %q; %s", name, everyState(t, w))
	})
	return name
}

// awaitReloaderReady waits until the probes of one of Reloader's pods succeed.
func awaitReloaderReady(t *testing.T, w *testkit.World) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		return slices.ContainsFunc(reloaderPods(t, w), ready), everyState(t, w)
	})
}

// wantNothingForbidden: the chart's roles are enough for each of Reloader's pods.
func wantNothingForbidden(t *testing.T, w *testkit.World) {
	t.Helper()
	logged := false
	for _, p := range reloaderPods(t, w) {
		log, err := logsOf(t, w, p.Name, &corev1.PodLogOptions{})
		logged = logged || err == nil && strings.Contains(log, "following resource=deployments")
		if strings.Contains(log, "forbidden") {
			t.Errorf("%s may not do everything:\n%s", p.Name, log)
		}
	}
	if !logged {
		t.Errorf("no log shows that workloads are followed; %s", everyState(t, w))
	}
}

// reloaderPods are Reloader's pods that aren't deleted.
func reloaderPods(t *testing.T, w *testkit.World) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(pods(t, w), func(p corev1.Pod) bool {
		return p.Labels["release"] != "reloader" || p.DeletionTimestamp != nil
	})
}
