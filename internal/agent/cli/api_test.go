package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

func TestFollowsAConfigMapAndASecretByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"a.conf": "1"}, binary: map[string][]byte{"blob": {0, 255, 10}}})
	c.apply(object{kind: "Secret", name: "db", data: map[string]string{"password": "p4ss"}})
	a := agentkit.Run(t, c.kube("--configmap=app", "--secret=db", "--item=password=secrets/db/password")...)
	a.WantFiles(map[string]string{"a.conf": "1", "blob": "\x00\xff\n", "secrets/db/password": "p4ss"})
	a.WantProbe("/startupz", http.StatusOK)
	a.WantProbe("/readyz", http.StatusOK)

	c.configMap("app", map[string]string{"b.conf": "2"})
	a.WantFiles(map[string]string{"b.conf": "2", "secrets/db/password": "p4ss"})
	const published = `lockstep_sync_attempts_total{result="ok",stage="publish"}`
	a.WantMetric(published, "2")

	// A change of labels must not publish.
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"b.conf": "2"}, labels: map[string]string{"only": "labels"}})
	c.apply(object{kind: "Secret", name: "db", data: map[string]string{"password": "new"}})
	a.WantFiles(map[string]string{"b.conf": "2", "secrets/db/password": "new"})
	a.WantMetric(published, "3")
	for _, leak := range []string{"p4ss", "new\""} {
		status, _ := os.ReadFile(filepath.Join(a.Root, "..lockstep", "status.json"))
		_, metrics := a.Probe("/metrics")
		if strings.Contains(a.Stderr()+string(status)+metrics, leak) {
			t.Errorf("a Secret's value is in the log, the status or the metrics")
		}
	}
}

// A role limited to one name is enough: the agent doesn't read other objects. Its token
// comes from a file, as in a pod.
func TestARoleLimitedToTheNameIsEnough(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	c.configMap("other", map[string]string{"b": "2"})
	account := labtest.NewAccount(t, c.lab, c.namespace)
	account.Allow(t, labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{"app"}, Verbs: []string{"list", "watch"}})
	account.RotateToken(t)
	a := agentkit.Run(t, "--kubeconfig="+account.Kubeconfig, "--configmap="+c.namespace+"/app")
	a.WantFiles(map[string]string{"a": "1"})
	c.configMap("app", map[string]string{"a": "2"})
	a.WantFiles(map[string]string{"a": "2"})

	denied := agentkit.Run(t, "--kubeconfig="+account.Kubeconfig, "--configmap="+c.namespace+"/other")
	denied.WantLog("forbidden")
	denied.WantProbe("/startupz", http.StatusServiceUnavailable)
}

func TestFollowsASelection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on := map[string]string{"dashboard": "yes"}
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one.json": "1"}})
	c.apply(object{kind: "Secret", name: "two", labels: on, data: map[string]string{"two.json": "2"}})
	c.configMap("unrelated", map[string]string{"x": "y"})
	a := agentkit.Run(t, c.kube("--selector=dashboard=yes", "--selector-kinds=configmap,secret")...)
	a.WantFiles(map[string]string{"one.json": "1", "two.json": "2"})
	c.apply(object{kind: "ConfigMap", name: "three", labels: on, data: map[string]string{"three.json": "3"}})
	a.WantFiles(map[string]string{"one.json": "1", "two.json": "2", "three.json": "3"})
	c.delete("three")
	a.WantFiles(map[string]string{"one.json": "1", "two.json": "2"})

	// Another source with the same file, found later: the old set stays.
	c.apply(object{kind: "ConfigMap", name: "clash", labels: on, data: map[string]string{"one.json": "other"}})
	a.WantStatus("a collision", func(s podsync.Status) bool { return strings.Contains(s.Message, "both have the file") })
	a.WantFiles(map[string]string{"one.json": "1", "two.json": "2"})
	a.WantMetric("lockstep_sync_degraded", "1")
	c.delete("clash")
	a.WantMetric("lockstep_sync_degraded", "0")
}

func TestADeletedObjectKeepsItsFilesAndIsFollowedWhenItComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	a := agentkit.Run(t, c.kube("--configmap=app")...)
	a.WantFiles(map[string]string{"a": "1"})
	c.delete("app")
	a.WantMetric("lockstep_sync_degraded", "1")
	a.WantFiles(map[string]string{"a": "1"})
	a.WantStatus("a deleted source", func(s podsync.Status) bool {
		return len(s.Sources) == 1 && s.Sources[0].State == "deleted, files kept"
	})
	a.WantProbe("/healthz", http.StatusOK)
	c.configMap("app", map[string]string{"a": "2"})
	a.WantFiles(map[string]string{"a": "2"})
	a.WantMetric("lockstep_sync_degraded", "0")
}

func TestMissingConfigMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	root := filepath.Join(t.TempDir(), "config")
	_, stderr, code := run(t, c.kube("--configmap=app", "--root="+root)...)
	want := "configmap/" + c.namespace + "/app not found: create it, or use --wait-for-sources to wait for it"
	if code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("code %d, %s", code, stderr)
	}
	a := agentkit.Run(t, c.kube("--configmap=app", "--wait-for-sources")...)
	a.WantProbe("/startupz", http.StatusServiceUnavailable)
	c.configMap("app", map[string]string{"a": "1"})
	a.WantFiles(map[string]string{"a": "1"})
	a.WantProbe("/startupz", http.StatusOK)
}

func TestTwoSourcesWithTheSameFileAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("one", map[string]string{"a": "1"})
	c.configMap("two", map[string]string{"a": "2"})
	_, stderr, code := run(t, c.kube("--configmap=one", "--configmap=two", "--root="+t.TempDir())...)
	if code != 1 || !strings.Contains(stderr, `both have the file "a"`) {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	root := filepath.Join(t.TempDir(), "config")
	_, stderr, code := run(t, c.kube("--configmap=app", "--root="+root, "--once", "--notify=exec:false")...)
	if code != 0 || fmt.Sprint(agentkit.Files(root)) != "map[a:1]" {
		t.Errorf("code %d, files %v, %s", code, agentkit.Files(root), stderr)
	}
	_, stderr, code = run(t, c.kube("--configmap=app", "--root="+filepath.Join(t.TempDir(), "x"), "--once",
		"--check=sh -c 'echo this is wrong; exit 3'")...)
	if code != 1 || !strings.Contains(stderr, "the check refused the first set: run sh: exit status 3") {
		t.Errorf("rejected: code %d, %s", code, stderr)
	}
}

// A hundred objects at the start are one set and one reload.
func TestManySourcesAreOneReload(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 100 {
		c.apply(object{kind: "ConfigMap", name: fmt.Sprintf("cm-%d", i), labels: map[string]string{"many": "yes"}, data: map[string]string{fmt.Sprintf("f%d", i): "x"}})
	}
	log := filepath.Join(t.TempDir(), "told")
	a := agentkit.Run(t, c.kube("--selector=many=yes", "--initial-notify=always", "--notify=exec:sh -c 'echo told >> "+log+"'")...)
	a.WantMetric("lockstep_sync_files", "100")
	a.WantMetric(`lockstep_sync_attempts_total{result="ok",stage="notify"}`, "1")
	if told, err := os.ReadFile(log); err != nil || string(told) != "told\n" {
		t.Errorf("told %q (%v)", told, err)
	}
}

// A burst ends in one reload with the latest content. The quiet period is longer than any
// write takes, so the test waits for it.
func TestABurstIsOneReload(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "0"})
	a := agentkit.Run(t, c.kube("--configmap=app", "--notify=exec:true", "--quiet=10s", "--max-wait=10m")...)
	a.WantFiles(map[string]string{"a": "0"})
	for i := range 20 {
		c.configMap("app", map[string]string{"a": fmt.Sprint(i + 1)})
	}
	a.WantFiles(map[string]string{"a": "20"})
	a.WantMetric(`lockstep_sync_attempts_total{result="ok",stage="notify"}`, "1")
}
