package safe_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// everyone runs a command that isn't about one namespace.
func (s *scene) everyone(t *testing.T, args ...string) string {
	t.Helper()
	if args[0] == "stop" {
		args = append(args, "--timeout", testkit.Patience.String())
	}
	stdout, stderr, code := inprocess.Run(t, append(args, "--kubeconfig", s.Cluster.Kubeconfig(), "--controller-namespace", s.Own)...)
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr)
	}
	return stdout + stderr
}

// TestStopAll: a stop ends every automatic change: rollouts, the rest of a series of evictions, and
// the restoring of images. It survives a restart, and its end delivers what has changed.
func TestStopAll(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.process = true
	registry := testkit.StartRegistry(t)
	pinned := registry.Push(t, "app", "1.0")
	s.users(t, 2)
	s.CreateImageUser(t, "image", registry, "app", "1.*")
	s.Annotate(t, "image", settings.Enforce, "true")
	s.evicted(t)
	s.run(t, append(registry.Flags(), "--pod-strategies", "--settle", "100ms")...)
	s.awaitImage(t, pinned)
	before := s.pods(t, "db")
	s.slow(func(pod *corev1.Pod) bool { return pod.Labels["app"] == "db" })
	s.SetConfig(t, "db", "key", "2")
	s.await(t, func() (bool, string) {
		return len(s.kept(t, before)) == 2, "no pod of statefulset/db was evicted"
	})

	said := s.everyone(t, "stop", "--all", "incident 42")
	if !strings.Contains(said, "incident 42") {
		t.Errorf("stop says %q", said)
	}
	s.awaitSwitch(t, "every automatic change is stopped: incident 42")
	s.mend(t)
	s.replacePods(t, "db") // the evicted pod's successor runs: the series could go on
	s.awaitRunning(t, "db", 3)
	const chosen = "registry.example/other:1"
	s.setImage(t, chosen)
	s.SetConfig(t, "app", "key", "2")
	for range 2 {
		s.awaitState(t, input.Stopped, version("app", "2"), name(1), name(2))
		s.awaitEvent(t, "image", "Warning Stopped")
		s.restart(t)
	}
	if kept := s.kept(t, before); len(kept) != 2 {
		t.Errorf("%d of the pods from before are left, want 2: evictions went on", len(kept))
	}
	if got := s.Deployment(t, "image").Spec.Template.Spec.Containers[0].Image; got != chosen {
		t.Errorf("the image %s was restored although everything is stopped", got)
	}
	s.checkCount(t, "everything is stopped", 0)

	s.everyone(t, "resume", "--all")
	s.awaitUsers(t, version("app", "2"), 2)
	s.awaitImage(t, pinned)
	s.await(t, func() (bool, string) {
		kept := s.kept(t, before)
		return len(kept) == 0, fmt.Sprintf("the evictions don't go on: %q are left", kept)
	})
	s.checkRollouts(t, "resumed", 1)
}

// TestStopByKubectl: the ConfigMap alone is the stop, however it was written. One for a namespace
// leaves the others alone.
func TestStopByKubectl(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.users(t, 2)
	s.run(t, "--settle", "100ms")
	stop := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Own, Name: settings.StopName}}
	if err := s.Client.Create(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	s.awaitSwitch(t, "every automatic change is stopped")
	s.SetConfig(t, "app", "key", "2")
	s.awaitState(t, input.Stopped, version("app", "2"), name(1), name(2))
	s.checkCount(t, "everything is stopped", 0)
	if err := s.Client.Delete(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	s.awaitUsers(t, version("app", "2"), 2)

	s.everyone(t, "stop", "-n", "another-namespace", "not ours")
	s.SetConfig(t, "app", "key", "3")
	s.awaitUsers(t, version("app", "3"), 2)
	s.everyone(t, "stop", "-n", s.Namespace, "ours")
	s.awaitSwitch(t, "automatic changes in namespace "+s.Namespace+" are stopped: ours")
	s.SetConfig(t, "app", "key", "4")
	s.awaitState(t, input.Stopped, version("app", "4"), name(1))
	s.everyone(t, "resume", "-n", s.Namespace)
	s.awaitUsers(t, version("app", "4"), 2)
	s.checkRollouts(t, "each version once", 3)
}

// TestStopIsQuick: while changes keep coming, nothing is rolled out once the controller knows of
// the stop.
func TestStopIsQuick(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const all = 20
	for n := range all {
		s.Create(t, testkit.ConfigMap(name(n+1), "key", "0"))
		s.create(t, user(name(n+1), name(n+1), ""))
	}
	s.awaitComplete(t)
	s.run(t, "--damping", "0", "--settle", "0s")
	var round atomic.Int64
	change := func() {
		value := fmt.Sprint(round.Add(1))
		for n := range all {
			s.SetConfig(t, name(n+1), "key", value)
		}
	}
	change()
	s.await(t, func() (bool, string) {
		change()
		return s.fleet.total() >= all, "there are too few rollouts"
	})
	s.everyone(t, "stop", "--all", "incident 42")
	s.awaitSwitch(t, "every automatic change is stopped")
	s.fleet.catchUp(t, s.World, s.Namespace)
	at := s.fleet.rollouts()
	change()
	for n := range all {
		s.awaitState(t, input.Stopped, version(name(n+1), fmt.Sprint(round.Load())), name(n+1))
	}
	s.fleet.catchUp(t, s.World, s.Namespace)
	for workload, count := range s.fleet.rollouts() {
		// The controller was already sending a patch when the stop came.
		if count > at[workload]+1 {
			t.Errorf("%s was rolled out %d times after the stop", workload, count-at[workload])
		}
	}
	at = s.fleet.rollouts()
	change()
	for n := range all {
		s.awaitState(t, input.Stopped, version(name(n+1), fmt.Sprint(round.Load())), name(n+1))
	}
	s.fleet.catchUp(t, s.World, s.Namespace)
	if now := s.fleet.rollouts(); !maps.Equal(at, now) {
		t.Errorf("rollouts %v, want those from before: %v", now, at)
	}
}

// awaitSwitch waits until the controller confirms what the ConfigMap stops.
func (s *scene) awaitSwitch(t *testing.T, text string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		events := s.allEvents(t, s.Own)
		return slices.ContainsFunc(events, func(note string) bool {
			return containsAll(note, []string{settings.StopName, "Stopped", text})
		}), fmt.Sprintf("no event says %q: %q", text, events)
	})
}

// evicted creates a StatefulSet of three pods that are evicted for a change of its ConfigMap.
func (s *scene) evicted(t *testing.T) {
	t.Helper()
	three, labels := int32(3), map[string]string{"app": "db"}
	s.Create(t, testkit.ConfigMap("db", "key", "1"))
	pod := user("db", "db", "").Spec.Template
	s.Create(t, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: map[string]string{settings.Reload: "auto", settings.Quiet: testkit.Quiet, settings.Strategy: "evict"}},
		Spec:       appsv1.StatefulSetSpec{Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod},
	})
	s.awaitRunning(t, "db", 3)
}

func (s *scene) pods(t *testing.T, app string) map[types.UID]string {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	pods := map[types.UID]string{}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods[pod.UID] = pod.Name
		}
	}
	return pods
}

// kept are the running pods of statefulset/db from before.
func (s *scene) kept(t *testing.T, before map[types.UID]string) map[types.UID]string {
	t.Helper()
	now := s.pods(t, "db")
	maps.DeleteFunc(now, func(uid types.UID, _ string) bool { return before[uid] == "" })
	return now
}

func (s *scene) awaitRunning(t *testing.T, app string, want int) {
	t.Helper()
	s.await(t, func() (bool, string) {
		got := s.pods(t, app)
		return len(got) == want, fmt.Sprintf("%d pods of %s run, want %d", len(got), app, want)
	})
}

func (s *scene) awaitImage(t *testing.T, want string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		got := s.Deployment(t, "image").Spec.Template.Spec.Containers[0].Image
		return got == want, fmt.Sprintf("deployment/image runs %s, want %s", got, want)
	})
}

// setImage is "kubectl set image".
func (s *scene) setImage(t *testing.T, image string) {
	t.Helper()
	d := s.Deployment(t, "image")
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Template.Spec.Containers[0].Image = image
	if err := s.Client.Patch(t.Context(), d, patch); err != nil {
		t.Fatal(err)
	}
}
