package synccli_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// reloads is an application that counts its reloads.
type reloads struct {
	mu     sync.Mutex
	times  []time.Time
	bodies []string
	answer func(n int) int
}

func (r *reloads) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.times = append(r.times, time.Now())
	r.bodies = append(r.bodies, request.Method+" "+request.URL.Path)
	code := r.answer(len(r.times))
	r.mu.Unlock()
	w.WriteHeader(code)
}

func (r *reloads) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

func always(code int) func(int) int { return func(int) int { return code } }

// dropIn starts the program under the original's name.
func dropIn(t *testing.T, c *cluster, env []string, args ...string) *agent {
	t.Helper()
	a := &agent{t: t, root: filepath.Join(t.TempDir(), "config"), addr: freeAddr(t)}
	a.Running = labtest.StartCommand(t, labtest.Command{
		Path: originalName(t), Args: append([]string{"--kubeconfig=" + c.lab.Kubeconfig(), "--health-addr=" + a.addr}, args...),
		Env: append([]string{"CONFIG_CONTROLLER_CONFIGROOT=" + a.root, "CONFIG_CONTROLLER_CONFIGMAP=" + c.namespace + "/app"}, env...),
	})
	return a
}

// originalName is a link with the name of the original's program.
func originalName(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config-controller")
	if err := os.Symlink(binary(t), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// The sidecar with its variables only: files, the first reload, and a change.
func TestDropInSidecar(t *testing.T) {
	t.Parallel()
	defer syscall.Umask(syscall.Umask(0o022))
	c := newCluster(t)
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"a.conf": "1", "b.conf": "x"}, binary: map[string][]byte{"blob": {1}}})
	app := &reloads{answer: always(http.StatusNoContent)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := dropIn(t, c, []string{"CONFIG_CONTROLLER_URL=" + server.URL + "/-/reload", "CONFIG_CONTROLLER_METHOD=PUT"})
	a.wantFiles(map[string]string{"a.conf": "1", "b.conf": "x", "blob": "\x01"})
	labtest.Eventually(t, patience, func() (bool, string) { return app.count() == 1, fmt.Sprint(app.count()) })
	info, err := os.Stat(filepath.Join(a.root, "a.conf"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0666 less the umask", info.Mode(), err)
	}

	// Changes right after a reload are one reload, ten seconds after it, with
	// the latest content.
	for i := range 10 {
		c.configMap("app", map[string]string{"a.conf": fmt.Sprint(i + 2)})
	}
	a.wantFiles(map[string]string{"a.conf": "11"})
	labtest.Eventually(t, patience, func() (bool, string) { return app.count() == 2, fmt.Sprint(app.count()) })
	if gap := app.times[1].Sub(app.times[0]); gap < 9900*time.Millisecond {
		t.Errorf("%s between two reloads", gap)
	}
	if app.bodies[0] != "PUT /-/reload" {
		t.Errorf("request %s", app.bodies[0])
	}
	if code := a.Stop(t); code != 0 {
		t.Errorf("SIGTERM: code %d", code)
	}
}

// An application that is not up yet is not a reason to exit, and one that
// fails is told again until it works.
func TestDropInRetriesUntilTheApplicationIsUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	addr := freeAddr(t)
	a := dropIn(t, c, []string{"CONFIG_CONTROLLER_URL=http://" + addr + "/reload"})
	a.wantFiles(map[string]string{"a": "1"})
	// It may be starting: that shows, but nobody is restarted for it.
	labtest.Eventually(t, patience, func() (bool, string) {
		s := a.status()
		return s.Reason == podsync.Unreachable && strings.Contains(s.Message, "connection refused"), fmt.Sprintf("status %+v", s)
	})
	a.wantMetric("lockstep_sync_degraded", "1")
	a.wantProbe("/healthz", http.StatusOK)
	app := &reloads{answer: func(n int) int {
		if n < 3 {
			return http.StatusInternalServerError
		}
		return http.StatusAccepted
	}}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: app}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	labtest.Eventually(t, 2*time.Minute, func() (bool, string) { return app.count() == 3, fmt.Sprint(app.count(), a.Stderr()) })
	a.wantProbe("/healthz", http.StatusOK)
	a.wantMetric("lockstep_sync_degraded", "0")
}

// Keys that were removed while the agent was away disappear; other people's
// files stay; so does the set of an earlier agent until the new one is there.
func TestDropInOverARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1", "b": "2"})
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := dropIn(t, c, []string{"CONFIG_CONTROLLER_URL=" + server.URL})
	a.wantFiles(map[string]string{"a": "1", "b": "2"})
	write(t, filepath.Join(a.root, "foreign"), "mine")
	a.Stop(t)
	c.configMap("app", map[string]string{"a": "1"})
	next := labtest.StartCommand(t, labtest.Command{Path: originalName(t), Args: []string{
		"--kubeconfig=" + c.lab.Kubeconfig(), "--configroot=" + a.root, "--configmap=" + c.namespace + "/app", "--reload-http=" + server.URL,
	}})
	a.Running = next
	a.wantFiles(map[string]string{"a": "1", "foreign": "mine"})
}

// The subprocess mode from beginning to end: the child starts with its files, gets
// a SIGHUP for a change and none for the first set, and its exit code counts. The
// cluster is found as kubectl finds it.
func TestDropInSubprocess(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a.conf": "1"})
	root := filepath.Join(t.TempDir(), "config")
	script := `echo started with $(cat ` + root + `/a.conf); trap 'echo hup $(cat ` + root + `/a.conf)' HUP; trap 'exit 7' TERM; while :; do sleep 0.05; done`
	a := &agent{t: t, root: root}
	a.Running = labtest.StartCommand(t, labtest.Command{
		Path: originalName(t), Env: []string{"KUBECONFIG=" + c.lab.Kubeconfig()},
		Args: []string{
			"--running-in-cluster=false", "--v", "2", "--stderrthreshold", "INFO", "--vmodule", "x=2", "--logtostderr",
			"--configmap=" + c.namespace + "/app", "--configroot=" + root, "--", "sh", "-c", script,
		},
	})
	labtest.Eventually(t, patience, func() (bool, string) { return a.Stdout() == "started with 1\n", a.Stdout() + a.Stderr() })
	c.configMap("app", map[string]string{"a.conf": "2"})
	labtest.Eventually(t, patience, func() (bool, string) {
		return a.Stdout() == "started with 1\nhup 2\n", a.Stdout() + a.Stderr()
	})
	if code := a.Stop(t); code != 7 {
		t.Errorf("exit code %d, want the child's", code)
	}
}

// --context chooses among the contexts of KUBECONFIG.
func TestDropInContext(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := labtest.StartCommand(t, labtest.Command{
		Path: originalName(t), Env: []string{"KUBECONFIG=" + c.lab.Kubeconfig()},
		Args: []string{"--running-in-cluster=false", "--context=none", "--configmap=x", "--configroot=" + t.TempDir(), "--reload-http=http://127.0.0.1:1/"},
	})
	if code := a.ExitCode(t, patience); code != 1 || !strings.Contains(a.Stderr(), `context "none" does not exist`) {
		t.Errorf("code %d: %s", code, a.Stderr())
	}
}

func TestDropInUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"--configmap=a --configroot=/x --":                             {2, "there is no command after --"},
		"--configroot=/x --":                                           {2, "there is no command after --"},
		"--configmap=a --configroot=/x":                                {2, "--reload-http is missing"},
		"--configmap=a --configroot=/x --reload-http=localhost:9090/x": {2, "--reload-http: want http://host:port/path"},
	} {
		_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: originalName(t), Args: strings.Fields(args)})
		if code != want.code || !strings.Contains(stderr, want.text) || strings.Contains(stderr, "panic") {
			t.Errorf("%s: code %d, %s", args, code, stderr)
		}
	}
}

func TestDropInMissingConfigMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := dropIn(t, c, nil, "--", "sh", "-c", "echo started")
	if code := a.ExitCode(t, patience); code != 1 || a.Stdout() != "" || !strings.Contains(a.Stderr(), "/app not found") {
		t.Errorf("code %d, %q, %s", code, a.Stdout(), a.Stderr())
	}
}

// Environment of kiwigrid's sidecar: selection, folders, one reload, and its
// security holes closed.
func TestK8sSidecar(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on := map[string]string{"grafana_dashboard": "1"}
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one.json": "{}", "steal.url": "http://127.0.0.1:1/"}})
	c.apply(object{kind: "ConfigMap", name: "two", labels: on, notes: map[string]string{"k8s-sidecar-target-directory": "team/a"}, data: map[string]string{"two.json": "{}"}})
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "LABEL=grafana_dashboard", "LABEL_VALUE=1", "REQ_URL="+server.URL+"/reload", "REQ_METHOD=POST")
	a.wantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}"})
	labtest.Eventually(t, patience, func() (bool, string) { return app.count() == 1, fmt.Sprint(app.count()) })

	c.apply(object{kind: "ConfigMap", name: "evil", labels: on, notes: map[string]string{"k8s-sidecar-target-directory": "/etc"}, data: map[string]string{"passwd": "x"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(a.status().Message, "is absolute"), fmt.Sprint(a.status())
	})
	a.wantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}"})
	a.wantMetric("lockstep_sync_degraded", "1")

	// Whoever may put a label on an object stops neither the others nor the agent.
	c.apply(object{kind: "ConfigMap", name: "three", labels: on, notes: map[string]string{"k8s-sidecar-target-directory": a.root + "/team/b"}, data: map[string]string{"three.json": "{}"}})
	a.wantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}", "team/b/three.json": "{}"})
	a.Stop(t)
	a = k8sSidecar(t, c, a.root, "LABEL=grafana_dashboard", "LABEL_VALUE=1")
	c.delete("two")
	a.wantFiles(map[string]string{"one.json": "{}", "team/b/three.json": "{}"})
	c.delete("evil")
	a.wantMetric("lockstep_sync_degraded", "0")
}

// k8sSidecar starts the program with the environment of kiwigrid's sidecar.
func k8sSidecar(t *testing.T, c *cluster, root string, env ...string) *agent {
	t.Helper()
	a := &agent{t: t, root: root, addr: freeAddr(t)}
	a.Running = labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: []string{"k8s-sidecar"}, Env: append([]string{
		"KUBECONFIG=" + c.lab.Kubeconfig(), "FOLDER=" + a.root, "NAMESPACE=" + c.namespace, "HEALTH_PORT=" + a.addr[strings.LastIndex(a.addr, ":")+1:],
	}, env...)})
	return a
}

// Two sidecars in one pod without a port of their own: the second runs without
// one. A port that is asked for and taken is an error.
func TestK8sSidecarsSideBySide(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(object{kind: "ConfigMap", name: "one", labels: map[string]string{"d": "1"}, data: map[string]string{"one.json": "{}"}})
	taken, err := net.Listen("tcp", ":8080")
	if err == nil { // otherwise somebody else has it, which is as good
		defer taken.Close()
	}
	root := filepath.Join(t.TempDir(), "dashboards")
	env := []string{"KUBECONFIG=" + c.lab.Kubeconfig(), "NAMESPACE=" + c.namespace, "LABEL=d", "FOLDER=" + root}
	a := &agent{t: t, root: root}
	a.Running = labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: []string{"k8s-sidecar"}, Env: env})
	a.wantFiles(map[string]string{"one.json": "{}"})
	if !strings.Contains(a.Stderr(), "there is no health port") {
		t.Errorf("nothing is said of the port:\n%s", a.Stderr())
	}
	explicit := labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: []string{"k8s-sidecar"}, Env: append(env, "FOLDER="+t.TempDir(), "HEALTH_PORT=8080")})
	if code := explicit.ExitCode(t, patience); code != 1 || !strings.Contains(explicit.Stderr(), "serve probes on :8080") {
		t.Errorf("code %d: %s", code, explicit.Stderr())
	}
}

// /healthz is the sidecar's own: bad before the first set, and not bad because
// the application says no, which is on its own path. The script comes before the
// request, and its failure changes nothing.
func TestK8sSidecarHealthAndScript(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	app := &reloads{answer: always(http.StatusUnauthorized)}
	server := httptest.NewServer(app)
	defer server.Close()
	script := filepath.Join(t.TempDir(), "script.sh")
	ran := filepath.Join(t.TempDir(), "ran")
	write(t, script, "echo ran >> "+ran+"; exit 3") // not executable: a shell runs it
	lacks := k8sSidecar(t, c, filepath.Join(t.TempDir(), "none"), "LABEL=d", "KUBECONFIG="+labtest.NewAccount(t, c.lab, c.namespace).Kubeconfig)
	if body := lacks.wantProbe("/healthz", http.StatusServiceUnavailable); !strings.Contains(body, "no set of files is in place yet") {
		t.Errorf("before the first set: %s", body)
	}
	c.apply(object{kind: "ConfigMap", name: "one", labels: map[string]string{"d": "1"}, data: map[string]string{"one.json": "{}"}})
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "LABEL=d", "REQ_URL="+server.URL, "REQ_RETRY_TOTAL=1", "SCRIPT="+script)
	a.wantProbe("/healthz/application", http.StatusServiceUnavailable)
	a.wantProbe("/readyz", http.StatusServiceUnavailable)
	a.wantProbe("/healthz", http.StatusOK)
	app.mu.Lock()
	app.answer = always(http.StatusOK)
	app.mu.Unlock()
	a.wantProbe("/healthz/application", http.StatusOK)
	runs := strings.Count(files(filepath.Dir(ran))["ran"], "ran")
	if n := app.count(); runs != n || n < 2 {
		t.Errorf("the script ran %d times for %d requests", runs, n)
	}
	if !strings.Contains(a.Stderr(), "a command failed, and nothing is repeated for it: run sh: exit status 3") {
		t.Errorf("the log is\n%s", a.Stderr())
	}
}

// Folders are real directories, whatever way they are written, and go when they
// are empty.
func TestK8sSidecarFolders(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	put := func(name, folder string) {
		c.apply(object{kind: "ConfigMap", name: name, labels: map[string]string{"d": "1"}, notes: map[string]string{"grafana_folder": folder}, data: map[string]string{name + ".json": "{}"}})
	}
	put("one", "./team")
	put("two", "team/")
	put("three", "other")
	put("four", "linked")
	root := filepath.Join(t.TempDir(), "dashboards")
	link := filepath.Join(root, "linked")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	a := k8sSidecar(t, c, root, "LABEL=d", "FOLDER_ANNOTATION=grafana_folder")
	a.wantFiles(map[string]string{"team/one.json": "{}", "team/two.json": "{}", "other/three.json": "{}"})
	for _, name := range []string{"team", "other", "team/one.json"} {
		if info, err := os.Lstat(filepath.Join(a.root, name)); err != nil || info.Mode()&os.ModeSymlink != 0 {
			t.Errorf("%s is a link (%v)", name, err)
		}
	}
	// A folder that is a link already is left out, alone.
	labtest.Eventually(t, patience, func() (bool, string) { // the status is written after the files
		message := a.status().Message
		return strings.Contains(message, "linked is a link, and files go into real directories"), fmt.Sprintf("message %q", message)
	})
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	c.delete("three")
	a.wantFiles(map[string]string{"team/one.json": "{}", "team/two.json": "{}", "linked/four.json": "{}"})
	labtest.Eventually(t, patience, func() (bool, string) {
		_, err := os.Stat(filepath.Join(a.root, "other"))
		return os.IsNotExist(err), "the empty folder stays"
	})
}

// A role with get alone, which was enough for the original's names, is refused by
// a line that says what to add; with that it works.
func TestK8sSidecarWithARoleForGet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("one", map[string]string{"one.json": "{}"})
	account := labtest.NewAccount(t, c.lab, c.namespace)
	rule := labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{"one"}, Verbs: []string{"get"}}
	account.Allow(t, rule)
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "RESOURCE_NAME=one", "KUBECONFIG="+account.Kubeconfig)
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(a.Stderr(), "needs the verbs list and watch, for which resourceNames: [one] is enough; get alone is not"), a.Stderr()
	})
	rule.Verbs = []string{"list", "watch"}
	account.Allow(t, rule)
	a.wantFiles(map[string]string{"one.json": "{}"})
}

// A name is looked for in every kind; those that are not there are waited for.
func TestK8sSidecarByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("one", map[string]string{"one.json": "{}"})
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "RESOURCE=both", "RESOURCE_NAME=one,later")
	a.wantFiles(map[string]string{"one.json": "{}"})
	c.apply(object{kind: "Secret", name: "later", data: map[string]string{"later.json": "{}"}})
	a.wantFiles(map[string]string{"one.json": "{}", "later.json": "{}"})
}

// configmap-reload's flags: watch a mounted directory, call, write nothing.
func TestConfigmapReload(t *testing.T) {
	t.Parallel()
	dir, second := t.TempDir(), t.TempDir()
	write(t, filepath.Join(second, "a"), "1") // the same name is another file
	write(t, filepath.Join(dir, "..one", "a"), "1")
	write(t, filepath.Join(dir, "..two", "a"), "2")
	if err := os.Symlink("..one", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := &agent{t: t, addr: freeAddr(t)}
	a.Running = labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: []string{"configmap-reload", "-volume-dir=" + dir, "-volume-dir=" + second, "-webhook-url=" + server.URL, "-web.listen-address=" + a.addr}})
	a.wantProbe("/startupz", http.StatusOK)
	if app.count() != 0 {
		t.Error("called without a change")
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		_ = os.Remove(filepath.Join(dir, "..tmp")) // usually not there
		if err := os.Symlink("..two", filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		return app.count() == 1, fmt.Sprint(app.count(), a.Stderr())
	})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
	write(t, filepath.Join(second, "a"), "2")
	labtest.Eventually(t, patience, func() (bool, string) { return app.count() == 2, fmt.Sprint(app.count(), a.Stderr()) })
}
