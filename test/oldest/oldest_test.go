// Package oldest_test plays one short story per capability on the oldest Kubernetes release
// that is supported. Everything else is tested on the newest one.
package oldest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// release is the oldest one that docs/start/upgrade.md promises.
const release = "1.34"

func TestMain(m *testing.M) { os.Exit(labtest.RunTests(m)) }

// TestCapabilities runs the built programs on one control plane of the oldest release.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	cluster := labtest.Private(t, labtest.Options{Kubernetes: release})
	if !strings.HasPrefix(cluster.Version(), release+".") {
		t.Fatalf("the control plane is %s, want %s", cluster.Version(), release)
	}
	for name, story := range map[string]func(t *testing.T, w *testkit.World){
		"reload":    reload,
		"images":    images,
		"revisions": revisions,
		"ask":       ask,
		"sync":      sync,
		"chart":     chart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, testkit.NewWorldOn(t, cluster))
		})
	}
}

// reload: two changes are one rollout, and what changes while the controller is down is
// delivered when it is back.
func reload(t *testing.T, w *testkit.World) {
	t.Helper()
	w.CreateApp(t)
	c := w.StartReady(t, "--leader-elect")
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	w.SetConfig(t, "app", "key", "2")
	w.SetSecret(t, "db", "key", "2")
	shown := w.AwaitRollout(t, testkit.Web, "")
	w.AwaitEvent(t, testkit.Web, "Normal Reloaded")
	if code := c.Stop(t); code != 0 {
		t.Errorf("the controller ended with %d", code)
	}
	w.SetConfig(t, "app", "key", "3")
	w.StartReady(t, "--leader-elect")
	w.AwaitRollout(t, testkit.Web, shown)
}

// images: a container is pinned to the newest tag, and follows it.
func images(t *testing.T, w *testkit.World) {
	t.Helper()
	registry := testkit.StartRegistry(t)
	first := registry.Push(t, "app", "1.0")
	w.CreateImageUser(t, testkit.Web, registry, "app", "1.*")
	w.StartReady(t, registry.Flags()...)
	awaitImage(t, w, first)
	awaitImage(t, w, registry.Push(t, "app", "1.1"))
}

func awaitImage(t *testing.T, w *testkit.World, want string) {
	t.Helper()
	_, digest, _ := strings.Cut(want, "@")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := w.Deployment(t, testkit.Web).Spec.Template.Spec.Containers[0].Image
		return strings.HasSuffix(got, "@"+digest), fmt.Sprintf("the container runs %s, want %s", got, want)
	})
}

// revisions: a revisioned ConfigMap belongs to the ReplicaSet that uses it.
func revisions(t *testing.T, w *testkit.World) {
	t.Helper()
	kept := testkit.ConfigMap("kept-1", "key", "1")
	kept.Labels = map[string]string{settings.Revisioned: "true"}
	w.Create(t, kept, testkit.Deployment(testkit.Web, "kept-1", ""))
	w.StartReady(t)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		found := &corev1.ConfigMap{}
		w.Get(t, "kept-1", found)
		owners := found.OwnerReferences
		return len(owners) == 1 && owners[0].Kind == "ReplicaSet", fmt.Sprintf("it belongs to %v", owners)
	})
}

// ask: a hold is told by status and explain, and its end delivers the change.
func ask(t *testing.T, w *testkit.World) {
	t.Helper()
	w.CreateApp(t)
	w.StartReady(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app")
	say(t, w, "hold", "deployment/web", "release freeze")
	w.SetConfig(t, "app", "key", "2")
	w.AwaitEvent(t, testkit.Web, "Warning Held")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the record is written once a second
		table := say(t, w, "status", "--controller-namespace", w.Own)
		return strings.Contains(table, "Held"), table
	})
	if told := say(t, w, "explain", "deployment/web", "--controller-namespace", w.Own); !strings.Contains(told, "Held") || !strings.Contains(told, "release freeze") {
		t.Errorf("explain says\n%s", told)
	}
	say(t, w, "release", "deployment/web")
	w.AwaitRollout(t, testkit.Web, "")
}

// say runs a command that must succeed on the application's namespace.
func say(t *testing.T, w *testkit.World, args ...string) string {
	t.Helper()
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep"), Args: append(args, "--kubeconfig", w.Cluster.Kubeconfig(), "-n", w.Namespace),
	})
	if code != 0 {
		t.Fatalf("lockstep %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// sync: the agent's files follow a ConfigMap that it watches.
func sync(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t, testkit.ConfigMap("app", "key", "1"))
	root := filepath.Join(t.TempDir(), "files")
	labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep-sync"),
		Args: []string{"--kubeconfig", w.Cluster.Kubeconfig(), "--configmap", w.Namespace + "/app", "--root", root},
	})
	awaitFile(t, filepath.Join(root, "key"), "1")
	w.SetConfig(t, "app", "key", "2")
	awaitFile(t, filepath.Join(root, "key"), "2")
}

func awaitFile(t *testing.T, path, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got, err := os.ReadFile(path)
		return string(got) == want, fmt.Sprintf("%s has %q, error %v, want %q", path, got, err, want)
	})
}

// chart: the API server knows every API and every field that the chart uses, with its defaults
// and with everything that can be switched on.
func chart(t *testing.T, w *testkit.World) {
	t.Helper()
	h, server := helmtest.New(t, ""), helmtest.NewServer(w.Client)
	for name, values := range map[string][]string{
		"the defaults": {"image: {repository: registry.example/lockstep}"},
		"everything":   {helmtest.Everything, fmt.Sprintf("{namespaces: [%[1]s], podStrategies: {enabled: true}, revisions: {secretNamespaces: [%[1]s]}}", w.Namespace)},
	} {
		objects := helmtest.Standard(h.Installation(t, w.Own, w.Own, w.Cluster.Version(), values...))
		if len(helmtest.OfKind(objects, "Deployment")) != 1 {
			t.Errorf("%s: no Deployment among %d objects", name, len(objects))
		}
		server.Accepts(t, objects)
	}
}
