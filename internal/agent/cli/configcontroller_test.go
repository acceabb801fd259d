package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// The original's client followed redirects, such as one that adds a slash. The reload is
// done with the answer of the last address.
func TestDropInFollowsARedirect(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	app := &reloads{answer: always(http.StatusOK)}
	mux := http.NewServeMux()
	mux.Handle("/-/reload", http.RedirectHandler("/-/reload/", http.StatusPermanentRedirect))
	mux.Handle("/-/reload/", app)
	server := httptest.NewServer(mux)
	defer server.Close()
	a := runDropIn(t, c, "CONFIG_CONTROLLER_URL="+server.URL+"/-/reload")
	a.WantConfirmed()
	app.mu.Lock()
	defer app.mu.Unlock()
	if want := []string{"POST /-/reload/"}; fmt.Sprint(app.bodies) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", app.bodies, want)
	}
}

// The original's client used the proxy of the environment. The test's server is that proxy: there
// is no application with this name.
func TestDropInUsesTheProxy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	proxied := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case proxied <- r.Method + " " + r.RequestURI:
		default:
		}
	}))
	defer proxy.Close()
	// The API server of the test is on 127.0.0.1, which is never proxied.
	a := startDropIn(t, c, []string{"HTTP_PROXY=" + proxy.URL, "CONFIG_CONTROLLER_URL=http://app.invalid/-/reload"})
	a.WantConfirmed()
	if got := <-proxied; got != "POST http://app.invalid/-/reload" {
		t.Errorf("the proxy was asked for %s", got)
	}
}

// A ConfigMap that can't be read at the first start ends the process, as in the original, and
// the error says why. The child isn't started.
func TestDropInThatCannotRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	down, _ := reserve(t)
	for name, test := range map[string]struct {
		flags []string
		want  []string
	}{
		"forbidden": {
			[]string{"--kubeconfig=" + labtest.NewAccount(t, c.lab, c.namespace).Kubeconfig},
			[]string{`cannot list resource "configmaps"`, "requires the verbs list and watch, which may be limited to resourceNames: [app]"},
		},
		"API server down": {
			[]string{"--running-in-cluster=false", "--server=http://" + down},
			[]string{"Error: ", "configmap/" + c.namespace + "/app: ", "connection refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := slices.Concat(test.flags, []string{"--configmap=" + c.namespace + "/app", "--configroot=" + agentkit.NewRoot(t), "--", "echo", "started"})
			a := labtest.StartCommand(t, labtest.Command{Path: originalName(t), Args: args})
			if code := a.ExitCode(t, agentkit.Patience); code != 1 || a.Stdout() != "" {
				t.Errorf("code %d, output %q", code, a.Stdout())
			}
			for _, want := range test.want {
				if !strings.Contains(a.Stderr(), want) {
					t.Errorf("the log lacks %q:\n%s", want, a.Stderr())
				}
			}
		})
	}
}

// With a published set in place, an API server that is down doesn't end the process: an
// application may depend on the set.
func TestDropInStartsAgainWithoutTheAPIServer(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // the agent waits ten seconds for its sources
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	root := agentkit.NewRoot(t)
	start := func(access ...string) *labtest.Running {
		args := slices.Concat(access, []string{"--configmap=" + c.namespace + "/app", "--configroot=" + root, "--", "sh", "-c", "cat " + root + "/a; exec sleep 1000"})
		return labtest.StartCommand(t, labtest.Command{Path: originalName(t), Args: args})
	}
	first := start("--kubeconfig=" + c.lab.Kubeconfig())
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return first.Stdout() == "1", first.Stderr() })
	first.Stop(t)
	down, _ := reserve(t)
	again := start("--running-in-cluster=false", "--server=http://"+down)
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) { return again.Stdout() == "1", again.Stderr() })
}

// A command without a handler for SIGHUP isn't signalled, because that would end it. With
// --always-sighup it is, as by the original, and the agent ends with it.
func TestDropInCommandWithoutAHandler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		ends  bool
	}{
		"spared": {nil, false},
		"ended":  {[]string{"--always-sighup"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newCluster(t)
			cluster.configMap("app", map[string]string{"a": "1"})
			a := startDropIn(t, cluster, nil, append(c.flags, "--", "sh", "-c", "echo started; exec sleep 1000")...)
			a.WantOutput("started")
			cluster.configMap("app", map[string]string{"a": "2"})
			if !c.ends {
				a.WantLog("does not handle SIGHUP (yet): it would be killed")
				a.WantFiles(map[string]string{"a": "2"})
				return
			}
			if code := a.ExitCode(t, agentkit.Patience); code != 128+1 {
				t.Errorf("exit code %d, want that of an application that SIGHUP ended\n%s", code, a.Stderr())
			}
		})
	}
}

// A Go program catches every signal, whether it handles it or not. One without a handler for
// SIGHUP ends, as with the original.
func TestDropInGoProgramWithoutAHandler(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	source, root := t.TempDir(), agentkit.NewRoot(t)
	agentkit.Write(t, filepath.Join(source, "b"), "1")
	a := startDropIn(t, c, nil, "--", agentkit.Program(t), "--directory="+source, "--root="+root)
	agentkit.New(t, a.Running, root, "").WantFiles(map[string]string{"b": "1"})
	c.configMap("app", map[string]string{"a": "2"})
	if code := a.ExitCode(t, agentkit.Patience); code == 0 {
		t.Errorf("exit code %d\n%s", code, a.Stderr())
	}
}

// Users build the program into images of their own: it works wherever it is copied to, under
// the original's name or any other.
func TestDropInCopiedElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"config-controller", "k8s-config-controller", "reloader"} {
		copied := filepath.Join(t.TempDir(), name)
		if _, stderr, code := labtest.RunCommand(t, labtest.Command{Path: "cp", Args: []string{agentkit.Program(t), copied}}); code != 0 {
			t.Fatal(stderr)
		}
		_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: copied, Args: []string{"--configroot", "/config", "--configmap=production/postgresql"}})
		if code != 2 || !strings.Contains(stderr, "--reload-http is missing; it is optional only with a command after --") {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
	// Under its own name, the flag is a mistake.
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: agentkit.Program(t), Args: []string{"--configroot=/config"}})
	if code != 2 || !strings.Contains(stderr, "unknown flag: --configroot") {
		t.Errorf("lockstep-sync itself: code %d, %s", code, stderr)
	}
}
