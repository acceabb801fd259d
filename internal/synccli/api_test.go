package synccli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// kube are the flags that lead to the test's API server.
func (c *cluster) kube(args ...string) []string {
	return append([]string{"--kubeconfig=" + c.lab.Kubeconfig(), "--namespace=" + c.namespace}, args...)
}

func TestFollowsAConfigMapAndASecretByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"a.conf": "1"}, binary: map[string][]byte{"blob": {0, 255, 10}}})
	c.apply(object{kind: "Secret", name: "db", data: map[string]string{"password": "p4ss"}})
	a := start(t, c.kube("--configmap=app", "--secret=db", "--item=password=secrets/db/password")...)
	a.wantFiles(map[string]string{"a.conf": "1", "blob": "\x00\xff\n", "secrets/db/password": "p4ss"})
	a.wantProbe("/startupz", http.StatusOK)
	a.wantProbe("/readyz", http.StatusOK)

	c.configMap("app", map[string]string{"b.conf": "2"})
	a.wantFiles(map[string]string{"b.conf": "2", "secrets/db/password": "p4ss"})
	const published = `lockstep_sync_attempts_total{result="ok",stage="publish"}`
	a.wantMetric(published, "2")

	// A change of labels must not publish.
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"b.conf": "2"}, labels: map[string]string{"only": "labels"}})
	c.apply(object{kind: "Secret", name: "db", data: map[string]string{"password": "new"}})
	a.wantFiles(map[string]string{"b.conf": "2", "secrets/db/password": "new"})
	a.wantMetric(published, "3")
	for _, leak := range []string{"p4ss", "new\""} {
		status, _ := os.ReadFile(filepath.Join(a.root, "..lockstep", "status.json"))
		_, metrics := a.probe("/metrics")
		if strings.Contains(a.Stderr()+string(status)+metrics, leak) {
			t.Errorf("a Secret's value is in the log, the status or the metrics")
		}
	}
}

// A role limited to one name is enough: neither more nor other objects are read.
func TestARoleLimitedToTheNameIsEnough(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	c.configMap("other", map[string]string{"b": "2"})
	account := labtest.NewAccount(t, c.lab, c.namespace)
	account.Allow(t, labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{"app"}, Verbs: []string{"list", "watch"}})
	a := start(t, "--kubeconfig="+account.Kubeconfig, "--configmap="+c.namespace+"/app")
	a.wantFiles(map[string]string{"a": "1"})
	c.configMap("app", map[string]string{"a": "2"})
	a.wantFiles(map[string]string{"a": "2"})

	denied := start(t, "--kubeconfig="+account.Kubeconfig, "--configmap="+c.namespace+"/other")
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(denied.Stderr(), "forbidden"), denied.Stderr()
	})
	denied.wantProbe("/startupz", http.StatusServiceUnavailable)
}

func TestFollowsASelection(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on := map[string]string{"dashboard": "yes"}
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one.json": "1"}})
	c.apply(object{kind: "Secret", name: "two", labels: on, data: map[string]string{"two.json": "2"}})
	c.configMap("unrelated", map[string]string{"x": "y"})
	a := start(t, c.kube("--selector=dashboard=yes", "--selector-kinds=configmap,secret")...)
	a.wantFiles(map[string]string{"one.json": "1", "two.json": "2"})
	c.apply(object{kind: "ConfigMap", name: "three", labels: on, data: map[string]string{"three.json": "3"}})
	a.wantFiles(map[string]string{"one.json": "1", "two.json": "2", "three.json": "3"})
	c.delete("three")
	a.wantFiles(map[string]string{"one.json": "1", "two.json": "2"})

	// Another source with the same file, found later: the old set stays.
	c.apply(object{kind: "ConfigMap", name: "clash", labels: on, data: map[string]string{"one.json": "other"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(a.status().Message, "both have the file"), fmt.Sprint(a.status())
	})
	a.wantFiles(map[string]string{"one.json": "1", "two.json": "2"})
	a.wantMetric("lockstep_sync_degraded", "1")
	c.delete("clash")
	a.wantMetric("lockstep_sync_degraded", "0")
}

func TestADeletedObjectKeepsItsFilesAndIsFollowedWhenItComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	a := start(t, c.kube("--configmap=app")...)
	a.wantFiles(map[string]string{"a": "1"})
	c.delete("app")
	a.wantMetric("lockstep_sync_degraded", "1")
	a.wantFiles(map[string]string{"a": "1"})
	if got := a.status().Sources[0].State; got != "deleted, files kept" {
		t.Errorf("the status says %q", got)
	}
	a.wantProbe("/healthz", http.StatusOK)
	c.configMap("app", map[string]string{"a": "2"})
	a.wantFiles(map[string]string{"a": "2"})
	a.wantMetric("lockstep_sync_degraded", "0")
}

func TestMissingConfigMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	root := filepath.Join(t.TempDir(), "config")
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: c.kube("--configmap=app", "--root="+root)})
	want := "configmap/" + c.namespace + "/app not found: create it, or wait for it with --wait-for-sources"
	if code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("code %d, %s", code, stderr)
	}
	a := start(t, c.kube("--configmap=app", "--wait-for-sources")...)
	a.wantProbe("/startupz", http.StatusServiceUnavailable)
	c.configMap("app", map[string]string{"a": "1"})
	a.wantFiles(map[string]string{"a": "1"})
	a.wantProbe("/startupz", http.StatusOK)
}

func TestTwoSourcesWithTheSameFileAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("one", map[string]string{"a": "1"})
	c.configMap("two", map[string]string{"a": "2"})
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: c.kube("--configmap=one", "--configmap=two", "--root="+t.TempDir())})
	if code != 1 || !strings.Contains(stderr, `both have the file "a"`) {
		t.Errorf("code %d, %s", code, stderr)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	root := filepath.Join(t.TempDir(), "config")
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: c.kube("--configmap=app", "--root="+root, "--once", "--notify=exec:false")})
	if code != 0 || fmt.Sprint(files(root)) != "map[a:1]" {
		t.Errorf("code %d, files %v, %s", code, files(root), stderr)
	}
	_, stderr, code = labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: c.kube("--configmap=app", "--root="+filepath.Join(t.TempDir(), "x"), "--once",
		"--check=sh -c 'echo this is wrong; exit 3'")})
	if code != 1 || !strings.Contains(stderr, "the check refused the first set: run sh: exit status 3") {
		t.Errorf("rejected: code %d, %s", code, stderr)
	}
}

// 300 objects at the start are one set and one reload.
func TestManySourcesAreOneReload(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 300 {
		c.apply(object{kind: "ConfigMap", name: fmt.Sprintf("cm-%d", i), labels: map[string]string{"many": "yes"}, data: map[string]string{fmt.Sprintf("f%d", i): "x"}})
	}
	log := filepath.Join(t.TempDir(), "told")
	a := start(t, c.kube("--selector=many=yes", "--initial-notify=always", "--notify=exec:sh -c 'echo told >> "+log+"'")...)
	a.wantMetric("lockstep_sync_files", "300")
	a.wantMetric(`lockstep_sync_attempts_total{result="ok",stage="notify"}`, "1")
	if told, err := os.ReadFile(log); err != nil || string(told) != "told\n" {
		t.Errorf("told %q (%v)", told, err)
	}
}

// A burst ends in one reload with the latest content.
func TestABurstIsOneReload(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "0"})
	a := start(t, c.kube("--configmap=app", "--notify=exec:true", "--quiet=10s", "--max-wait=10m")...)
	a.wantFiles(map[string]string{"a": "0"})
	for i := range 20 {
		c.configMap("app", map[string]string{"a": fmt.Sprint(i + 1)})
	}
	a.wantFiles(map[string]string{"a": "20"})
	a.wantMetric(`lockstep_sync_attempts_total{result="ok",stage="notify"}`, "1")
}

// The token is read again when it is replaced: an agent whose token was taken
// back goes on with the new one.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	rule := labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}
	account := labtest.NewAccount(t, c.lab, c.namespace)
	account.Allow(t, rule)
	first, kubeconfig := tokenFileConfig(t, account.Kubeconfig)
	token := filepath.Join(filepath.Dir(kubeconfig), "token")
	write(t, token, first)
	a := start(t, "--kubeconfig="+kubeconfig, "--configmap="+c.namespace+"/app", "--stall-deadline=4s")
	a.wantFiles(map[string]string{"a": "1"})

	// Its token dies with the account.
	c.do(http.MethodDelete, c.path("ServiceAccount", account.Name), "application/json", nil)
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(a.Stderr(), "Unauthorized"), a.Stderr()
	})
	a.wantProbe("/healthz/source", http.StatusServiceUnavailable)
	c.configMap("app", map[string]string{"a": "2"})

	again := labtest.NewAccount(t, c.lab, c.namespace)
	again.Allow(t, rule)
	second, _ := tokenFileConfig(t, again.Kubeconfig)
	write(t, token, second)
	labtest.Eventually(t, 2*time.Minute, func() (bool, string) {
		return files(a.root)["a"] == "2", "the new token is not used\n" + a.Stderr()
	})
	a.wantProbe("/healthz/source", http.StatusOK)
}

// tokenFileConfig makes a kubeconfig that names a token file instead of a token.
func tokenFileConfig(t *testing.T, kubeconfig string) (token, path string) {
	t.Helper()
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	_, rest, found := strings.Cut(text, "token:")
	if !found {
		t.Fatalf("no token in\n%s", text)
	}
	quoted := strings.TrimSpace(strings.FieldsFunc(rest, func(r rune) bool { return r == '}' || r == '\n' })[0])
	token = strings.Trim(quoted, `"`)
	path = filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, strings.Replace(text, "token: "+quoted, "tokenFile: "+filepath.Join(filepath.Dir(path), "token"), 1))
	return token, path
}
