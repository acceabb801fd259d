package cli_test

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
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
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

// dropIn is the command line of the original, config-controller, with its variables.
func dropIn(c *cluster, root, addr string, env []string, args ...string) agentkit.Call {
	return agentkit.Call{
		Name: "config-controller", Args: append([]string{"--kubeconfig=" + c.lab.Kubeconfig(), "--health-addr=" + addr}, args...),
		Env: append([]string{"CONFIG_CONTROLLER_CONFIGROOT=" + root, "CONFIG_CONTROLLER_CONFIGMAP=" + c.namespace + "/app"}, env...),
	}
}

// story is the test of the drop-in that stays in "make test".
const story = "TestDropInSidecar"

// runDropIn runs that command line in this process.
func runDropIn(t *testing.T, c *cluster, env ...string) *agentkit.Agent {
	t.Helper()
	labtest.Story(t, story)
	root, addr := agentkit.NewRoot(t), agentkit.FreeAddr(t)
	return agentkit.New(t, agentkit.InProcess(t, dropIn(c, root, addr, env)), root, addr)
}

// startDropIn starts the built program by the original's name and with that command line.
// The umask is a pod's, whatever the test's is.
func startDropIn(t *testing.T, c *cluster, env []string, args ...string) *agentkit.Agent {
	t.Helper()
	labtest.Story(t, story)
	root, addr := agentkit.NewRoot(t), agentkit.FreeAddr(t)
	call := dropIn(c, root, addr, env, args...)
	return agentkit.New(t, labtest.StartCommand(t, labtest.Command{
		Path: "sh", Args: append([]string{"-c", `umask 022; exec "$@"`, "sh", originalName(t)}, call.Args...), Env: call.Env,
	}), root, addr)
}

// originalName is a link with the name of the original's program.
func originalName(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config-controller")
	if err := os.Symlink(agentkit.Program(t), name); err != nil {
		t.Fatal(err)
	}
	return name
}

// The sidecar with its variables only: files, the first reload, and a change.
func TestDropInSidecar(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.apply(object{kind: "ConfigMap", name: "app", data: map[string]string{"a.conf": "1", "b.conf": "x"}, binary: map[string][]byte{"blob": {1}}})
	app := &reloads{answer: always(http.StatusNoContent)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := startDropIn(t, c, []string{"CONFIG_CONTROLLER_URL=" + server.URL + "/-/reload", "CONFIG_CONTROLLER_METHOD=PUT"})
	a.WantFiles(map[string]string{"a.conf": "1", "b.conf": "x", "blob": "\x01"})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == 1, fmt.Sprint(app.count()) })
	info, err := os.Stat(filepath.Join(a.Root, "a.conf"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0666 less the umask", info.Mode(), err)
	}

	// Changes right after a reload are one reload, ten seconds after it, with
	// the latest content. Only a test that takes longer for them causes another one.
	for i := range 10 {
		c.configMap("app", map[string]string{"a.conf": fmt.Sprint(i + 2)})
	}
	changed := time.Now()
	a.WantFiles(map[string]string{"a.conf": "11"})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() >= 2, fmt.Sprint(app.count()) })
	app.mu.Lock()
	defer app.mu.Unlock()
	if gap := app.times[1].Sub(app.times[0]); gap < 10*time.Second {
		t.Errorf("%s between two reloads, want at least 10 s", gap)
	}
	if n := len(app.times); n != 2 && changed.Sub(app.times[0]) < 5*time.Second {
		t.Errorf("%d reloads", n)
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
	addr, listen := reserve(t)
	a := runDropIn(t, c, "CONFIG_CONTROLLER_URL=http://"+addr+"/reload")
	a.WantFiles(map[string]string{"a": "1"})
	// It may be starting: that shows, but nobody is restarted for it.
	a.WantStatus("an application that isn't up", func(s podsync.Status) bool {
		return s.Reason == podsync.Unreachable && strings.Contains(s.Message, "connection refused")
	})
	a.WantMetric("lockstep_sync_degraded", "1")
	a.WantProbe("/healthz", http.StatusOK)
	app := &reloads{answer: func(n int) int {
		if n < 3 {
			return http.StatusInternalServerError
		}
		return http.StatusAccepted
	}}
	server := &http.Server{Handler: app}
	listener := listen()
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	labtest.Eventually(t, 2*time.Minute, func() (bool, string) { return app.count() == 3, fmt.Sprint(app.count(), a.Stderr()) })
	a.WantProbe("/healthz", http.StatusOK)
	a.WantMetric("lockstep_sync_degraded", "0")
}

// reserve takes a port that refuses connections until listen is called.
func reserve(t *testing.T) (addr string, listen func() net.Listener) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(err)
	socket := os.NewFile(uintptr(fd), "reserved")
	t.Cleanup(func() { socket.Close() })
	must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	must(err)
	return fmt.Sprint("127.0.0.1:", name.(*unix.SockaddrInet4).Port), func() net.Listener {
		must(unix.Listen(fd, unix.SOMAXCONN))
		listener, err := net.FileListener(socket)
		must(err)
		return listener
	}
}

// Keys that were removed while the agent was away disappear; other people's
// files stay; so does the set of an earlier agent until the new one is there.
func TestDropInOverARestart(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // ten seconds lie between two reloads, even over a restart
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1", "b": "2"})
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	a := runDropIn(t, c, "CONFIG_CONTROLLER_URL="+server.URL)
	a.WantFiles(map[string]string{"a": "1", "b": "2"})
	agentkit.Write(t, filepath.Join(a.Root, "foreign"), "mine")
	a.Stop(t)
	c.configMap("app", map[string]string{"a": "1"})
	a.Running = agentkit.InProcess(t, agentkit.Call{Name: "config-controller", Args: []string{
		"--kubeconfig=" + c.lab.Kubeconfig(), "--configroot=" + a.Root, "--configmap=" + c.namespace + "/app", "--reload-http=" + server.URL,
	}})
	a.WantFiles(map[string]string{"a": "1", "foreign": "mine"})
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
	a := labtest.StartCommand(t, labtest.Command{
		Path: originalName(t), Env: []string{"KUBECONFIG=" + c.lab.Kubeconfig()},
		Args: []string{
			"--running-in-cluster=false", "--v", "2", "--stderrthreshold", "INFO", "--vmodule", "x=2", "--logtostderr",
			"--configmap=" + c.namespace + "/app", "--configroot=" + root, "--", "sh", "-c", script,
		},
	})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return a.Stdout() == "started with 1\n", a.Stdout() + a.Stderr() })
	c.configMap("app", map[string]string{"a.conf": "2"})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
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
	a := agentkit.InProcess(t, agentkit.Call{
		Name: "config-controller", Env: []string{"KUBECONFIG=" + c.lab.Kubeconfig()},
		Args: []string{"--running-in-cluster=false", "--context=none", "--configmap=x", "--configroot=" + t.TempDir(), "--reload-http=http://127.0.0.1:1/"},
	})
	if code := a.ExitCode(t, agentkit.Patience); code != 1 || !strings.Contains(a.Stderr(), `context "none" does not exist`) {
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
		a := agentkit.InProcess(t, agentkit.Call{Name: "config-controller", Args: strings.Fields(args)})
		if code := a.ExitCode(t, agentkit.Patience); code != want.code || !strings.Contains(a.Stderr(), want.text) {
			t.Errorf("%s: code %d, %s", args, code, a.Stderr())
		}
	}
}

func TestDropInMissingConfigMap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := startDropIn(t, c, nil, "--", "sh", "-c", "echo started")
	if code := a.ExitCode(t, agentkit.Patience); code != 1 || a.Stdout() != "" || !strings.Contains(a.Stderr(), "/app not found") {
		t.Errorf("code %d, %q, %s", code, a.Stdout(), a.Stderr())
	}
}

// Environment of kiwigrid's sidecar: selection, directories, one reload, and its
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
	a := startK8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "LABEL=grafana_dashboard", "LABEL_VALUE=1", "REQ_URL="+server.URL+"/reload", "REQ_METHOD=POST")
	a.WantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}"})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == 1, fmt.Sprint(app.count()) })

	c.apply(object{kind: "ConfigMap", name: "evil", labels: on, notes: map[string]string{"k8s-sidecar-target-directory": "/etc"}, data: map[string]string{"passwd": "x"}})
	a.WantStatus("a refused directory", func(s podsync.Status) bool { return strings.Contains(s.Message, "is absolute") })
	a.WantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}"})
	a.WantMetric("lockstep_sync_degraded", "1")

	// Whoever may put a label on an object stops neither the others nor the agent.
	c.apply(object{kind: "ConfigMap", name: "three", labels: on, notes: map[string]string{"k8s-sidecar-target-directory": a.Root + "/team/b"}, data: map[string]string{"three.json": "{}"}})
	a.WantFiles(map[string]string{"one.json": "{}", "team/a/two.json": "{}", "team/b/three.json": "{}"})
	a.Stop(t)
	a = startK8sSidecar(t, c, a.Root, "LABEL=grafana_dashboard", "LABEL_VALUE=1")
	c.delete("two")
	a.WantFiles(map[string]string{"one.json": "{}", "team/b/three.json": "{}"})
	c.delete("evil")
	a.WantMetric("lockstep_sync_degraded", "0")
}

// k8sSidecar runs the agent with the environment of kiwigrid's sidecar.
func k8sSidecar(t *testing.T, c *cluster, root string, env ...string) *agentkit.Agent {
	t.Helper()
	labtest.Story(t, "TestK8sSidecar")
	port := agentkit.FreePort(t)
	call := agentkit.Call{Args: []string{"k8s-sidecar"}, Env: sidecarEnv(c, root, port, env)}
	return agentkit.New(t, agentkit.InProcess(t, call), root, "127.0.0.1:"+port)
}

// startK8sSidecar starts the built program with that environment.
func startK8sSidecar(t *testing.T, c *cluster, root string, env ...string) *agentkit.Agent {
	t.Helper()
	labtest.Story(t, "TestK8sSidecar")
	port := agentkit.FreePort(t)
	command := labtest.Command{Path: agentkit.Program(t), Args: []string{"k8s-sidecar"}, Env: sidecarEnv(c, root, port, env)}
	return agentkit.New(t, labtest.StartCommand(t, command), root, "127.0.0.1:"+port)
}

func sidecarEnv(c *cluster, root, port string, env []string) []string {
	return append([]string{"KUBECONFIG=" + c.lab.Kubeconfig(), "FOLDER=" + root, "NAMESPACE=" + c.namespace, "HEALTH_PORT=" + port}, env...)
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
	agentkit.Write(t, script, "echo ran >> "+ran+"; exit 3") // not executable: a shell runs it
	lacks := k8sSidecar(t, c, filepath.Join(t.TempDir(), "none"), "LABEL=d", "KUBECONFIG="+labtest.NewAccount(t, c.lab, c.namespace).Kubeconfig)
	if body := lacks.WantProbe("/healthz", http.StatusServiceUnavailable); !strings.Contains(body, "no set of files is in place yet") {
		t.Errorf("before the first set: %s", body)
	}
	c.apply(object{kind: "ConfigMap", name: "one", labels: map[string]string{"d": "1"}, data: map[string]string{"one.json": "{}"}})
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "LABEL=d", "REQ_URL="+server.URL, "REQ_RETRY_TOTAL=1", "SCRIPT="+script)
	a.WantProbe("/healthz/application", http.StatusServiceUnavailable)
	a.WantProbe("/readyz", http.StatusServiceUnavailable)
	a.WantProbe("/healthz", http.StatusOK)
	app.mu.Lock()
	app.answer = always(http.StatusOK)
	app.mu.Unlock()
	a.WantProbe("/healthz/application", http.StatusOK)
	runs := strings.Count(agentkit.Files(filepath.Dir(ran))["ran"], "ran")
	if n := app.count(); runs != n || n < 2 {
		t.Errorf("the script ran %d times for %d requests", runs, n)
	}
	if !strings.Contains(a.Stderr(), "a command failed and is not retried: run sh: exit status 3") {
		t.Errorf("the log is\n%s", a.Stderr())
	}
}

// Folders are real directories, whatever way they are written, and go when they
// are empty.
func TestK8sSidecarFolders(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	put := func(name, dir string) {
		c.apply(object{kind: "ConfigMap", name: name, labels: map[string]string{"d": "1"}, notes: map[string]string{"grafana_folder": dir}, data: map[string]string{name + ".json": "{}"}})
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
	a.WantFiles(map[string]string{"team/one.json": "{}", "team/two.json": "{}", "other/three.json": "{}"})
	for _, name := range []string{"team", "other", "team/one.json"} {
		if info, err := os.Lstat(filepath.Join(a.Root, name)); err != nil || info.Mode()&os.ModeSymlink != 0 {
			t.Errorf("%s is a link (%v)", name, err)
		}
	}
	// A directory that is a link already is left out, alone.
	a.WantStatus("the link", func(s podsync.Status) bool { // the status is written after the files
		return strings.Contains(s.Message, "linked is a link, and files go into real directories")
	})
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	c.delete("three")
	a.WantFiles(map[string]string{"team/one.json": "{}", "team/two.json": "{}", "linked/four.json": "{}"})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		_, err := os.Stat(filepath.Join(a.Root, "other"))
		return os.IsNotExist(err), fmt.Sprintf("the agent hasn't removed the empty directory (error %v)", err)
	})
}

// A role with get alone, which was enough for the original's names, is refused by
// a line that says what to add; with that it works.
func TestK8sSidecarWithARoleForGet(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // the agent waits longer and longer before it tries again
	c := newCluster(t)
	c.configMap("one", map[string]string{"one.json": "{}"})
	account := labtest.NewAccount(t, c.lab, c.namespace)
	rule := labtest.Rule{Groups: []string{""}, Resources: []string{"configmaps"}, Names: []string{"one"}, Verbs: []string{"get"}}
	account.Allow(t, rule)
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "RESOURCE_NAME=one", "KUBECONFIG="+account.Kubeconfig)
	a.WantLog("requires the verbs list and watch, which may be limited to resourceNames: [one]; get is not enough")
	rule.Verbs = []string{"list", "watch"}
	account.Allow(t, rule)
	a.WantFiles(map[string]string{"one.json": "{}"})
}

// A name is looked for in every kind; those that are not there are waited for.
func TestK8sSidecarByName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("one", map[string]string{"one.json": "{}"})
	a := k8sSidecar(t, c, filepath.Join(t.TempDir(), "dashboards"), "RESOURCE=both", "RESOURCE_NAME=one,later")
	a.WantFiles(map[string]string{"one.json": "{}"})
	c.apply(object{kind: "Secret", name: "later", data: map[string]string{"later.json": "{}"}})
	a.WantFiles(map[string]string{"one.json": "{}", "later.json": "{}"})
}

// configmap-reload's flags: watch a mounted directory, call, write nothing.
func TestConfigmapReload(t *testing.T) {
	t.Parallel()
	dir, second := t.TempDir(), t.TempDir()
	agentkit.Write(t, filepath.Join(second, "a"), "1") // the same name is another file
	agentkit.Write(t, filepath.Join(dir, "..one", "a"), "1")
	agentkit.Write(t, filepath.Join(dir, "..two", "a"), "2")
	if err := os.Symlink("..one", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	app := &reloads{answer: always(http.StatusOK)}
	server := httptest.NewServer(app)
	defer server.Close()
	start := func() *agentkit.Agent {
		addr := agentkit.FreeAddr(t)
		a := agentkit.New(t, labtest.StartCommand(t, labtest.Command{Path: agentkit.Program(t), Args: []string{
			"configmap-reload", "-volume-dir=" + dir, "-volume-dir=" + second, "-webhook-url=" + server.URL, "-web.listen-address=" + addr,
		}}), "", addr)
		a.WantProbe("/startupz", http.StatusOK)
		return a
	}
	a := start()
	if app.count() != 0 {
		t.Error("called without a change")
	}
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
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
	agentkit.Write(t, filepath.Join(second, "a"), "2")
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == 2, fmt.Sprint(app.count(), a.Stderr()) })

	// A change between two processes isn't called for.
	a.Stop(t)
	agentkit.Write(t, filepath.Join(second, "a"), "3")
	a = start()
	if got := app.count(); got != 2 {
		t.Errorf("%d calls, want none for a change between two processes", got)
	}
	agentkit.Write(t, filepath.Join(second, "a"), "4")
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return app.count() == 3, fmt.Sprint(app.count(), a.Stderr()) })
}
