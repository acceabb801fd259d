package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// immutableSourceKeepsItsCopy: the kubelet does not watch an immutable ConfigMap. While a
// pod of the node refers to it, new pods load the copy that the node has, also after it
// was deleted and made again. So Lockstep calls nothing delivered; when no pod is left,
// "lockstep roll" delivers.
func immutableSourceKeepsItsCopy(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	sealed := func(greeting, file string) *corev1.ConfigMap {
		c := config(greeting, file)
		c.Immutable = new(true)
		return c
	}
	w.Create(t, sealed("hello", "one"), application(map[string]string{settings.Reload: "auto"}))
	awaitOutput(t, w, "env hello", "file one")
	w.StartReady(t, "--quiet="+quiet.String())
	w.AwaitRecord(t, "app", "configmap/app", " sealed")
	given := w.Record(t, "app")

	old := sealed("hello", "one")
	old.Namespace = w.Namespace
	if err := w.Client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.Create(t, sealed("bonjour", "two"))
	w.AwaitEvent(t, "app", "Warning ImmutableReplaced", "configmap/app", "new name")

	before := names(pods(t, w))
	w.Patch(t, &appsv1.Deployment{}, "app", `{"spec":{"template":{"metadata":{"annotations":{"restarted":"by hand"}}}}}`)
	fresh := awaitFreshPod(t, w, before)
	if log, err := logsOf(t, w, fresh, &corev1.PodLogOptions{}); err != nil || !strings.Contains(log, "env hello") || !strings.Contains(log, "file one") {
		t.Errorf("a new pod printed %q (error %v); this kubelet used to give it the old copy", log, err)
	}
	if now := w.Record(t, "app"); version(now) != version(given) {
		t.Errorf("the record is %s, want the version that the pods run: %s", now, given)
	}

	w.Patch(t, &appsv1.Deployment{}, "app", `{"spec":{"replicas":0}}`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		n := len(pods(t, w))
		return n == 0, fmt.Sprintf("%d pods are left", n)
	})
	roll := labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep"), Args: []string{"roll", "deployment/app", "-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig(), "--controller-namespace", w.Own, "--now"},
	})
	if code := roll.ExitCode(t, testkit.Patience); code != 0 {
		t.Fatalf("roll ended with %d: %s", code, roll.Stderr())
	}
	w.Patch(t, &appsv1.Deployment{}, "app", `{"spec":{"replicas":1}}`)
	awaitOutput(t, w, "env bonjour", "file two")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := w.Record(t, "app")
		return version(now) != version(given), "the record is still " + now
	})
}

// version is that of the ConfigMap in an entry of the record.
func version(entry string) string {
	_, rest, _ := strings.Cut(entry, `"configmap/app":"`)
	v, _, _ := strings.Cut(rest, " ")
	return v
}

func names(all []corev1.Pod) []string {
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = p.Name
	}
	return list
}

// awaitFreshPod waits until a pod that was not there before has printed something.
func awaitFreshPod(t *testing.T, w *testkit.World, before []string) string {
	t.Helper()
	var fresh string
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &corev1.PodList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, p := range list.Items {
			if slices.Contains(before, p.Name) {
				continue
			}
			log, err := logsOf(t, w, p.Name, &corev1.PodLogOptions{})
			if err == nil && strings.Contains(log, "file ") {
				fresh = p.Name
				return true, ""
			}
			seen = append(seen, fmt.Sprintf("%s is %s, error %v, log %q", p.Name, p.Status.Phase, err, log))
		}
		return false, fmt.Sprint("no new pod has printed its configuration; new pods: ", seen)
	})
	return fresh
}
