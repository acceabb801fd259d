package synccli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// hole is a proxy that can swallow everything without closing anything: what a
// dead firewall or a crashed node does to a connection.
type hole struct {
	listener net.Listener
	target   string
	open     atomic.Bool
	mu       sync.Mutex
	conns    []net.Conn
}

func newHole(t *testing.T, target string) *hole {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{listener: listener, target: target}
	t.Cleanup(func() {
		listener.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.conns {
			c.Close()
		}
	})
	go h.serve()
	return h
}

func (h *hole) serve() {
	for {
		client, err := h.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", h.target)
		if err != nil {
			client.Close()
			continue
		}
		h.mu.Lock()
		h.conns = append(h.conns, client, server)
		h.mu.Unlock()
		// A connection made inside the hole stays in it.
		swallowed := &atomic.Bool{}
		swallowed.Store(h.open.Load())
		go h.copy(client, server, swallowed)
		go h.copy(server, client, swallowed)
	}
}

func (h *hole) copy(to io.Writer, from io.Reader, swallowed *atomic.Bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if h.open.Load() {
			swallowed.Store(true)
		}
		if !swallowed.Load() && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// through makes a kubeconfig that leads through the proxy.
func (h *hole) through(t *testing.T, kubeconfig, server string) string {
	t.Helper()
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, strings.ReplaceAll(string(raw), server, "https://"+h.listener.Addr().String()))
	return path
}

// A watch that leads into a black hole makes the agent unhealthy within its
// deadline, and it recovers by itself.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	u, err := url.Parse(c.lab.Server())
	if err != nil {
		t.Fatal(err)
	}
	h := newHole(t, u.Host)
	a := start(t, "--kubeconfig="+h.through(t, c.lab.Kubeconfig(), c.lab.Server()), "--configmap="+c.namespace+"/app", "--stall-deadline=4s")
	a.wantFiles(map[string]string{"a": "1"})
	a.wantProbe("/healthz", http.StatusOK)

	h.open.Store(true)
	c.configMap("app", map[string]string{"a": "2"})
	body := a.wantProbe("/healthz", http.StatusServiceUnavailable)
	if !strings.Contains(body, "nothing heard of configmap/"+c.namespace+"/app") {
		t.Errorf("healthz says %s", body)
	}
	a.wantProbe("/healthz/application", http.StatusOK)
	a.wantFiles(map[string]string{"a": "1"})

	h.open.Store(false)
	a.wantFiles(map[string]string{"a": "2"})
	a.wantProbe("/healthz", http.StatusOK)
}

// swallowing is a proxy that can answer a watch and pass nothing of it on.
type swallowing struct {
	next    http.RoundTripper
	swallow atomic.Bool
}

func (s *swallowing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err == nil && s.swallow.Load() && r.URL.Query().Get("watch") != "" {
		answer.Body = silent{ctx: r.Context(), Closer: answer.Body}
	}
	return answer, err
}

// silent is a body that never comes.
type silent struct {
	io.Closer

	ctx context.Context
}

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// A watch that can be opened and brings nothing is not healthy, however often
// it is opened again.
func TestAProxyThatSwallowsBodies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	target, err := url.Parse(c.lab.Server())
	if err != nil {
		t.Fatal(err)
	}
	transport := &swallowing{next: c.client.Transport}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	})
	defer proxy.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, kubeconfig, "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}], clusters: [{name: x, cluster: {server: '"+proxy.URL+"'}}]}")
	a := start(t, "--kubeconfig="+kubeconfig, "--configmap="+c.namespace+"/app", "--stall-deadline=4s")
	a.wantFiles(map[string]string{"a": "1"})
	a.wantProbe("/healthz/source", http.StatusOK)
	transport.swallow.Store(true)
	c.configMap("app", map[string]string{"a": "2"})
	a.wantProbe("/healthz/source", http.StatusServiceUnavailable)
	transport.swallow.Store(false)
	a.wantFiles(map[string]string{"a": "2"})
	a.wantProbe("/healthz/source", http.StatusOK)
}

// Objects that are changed and deleted while the API server is away are found
// when it is back.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	on := map[string]string{"x": "y"}
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one": "1"}})
	c.apply(object{kind: "ConfigMap", name: "two", labels: on, data: map[string]string{"two": "1"}})
	u, err := url.Parse(c.lab.Server())
	if err != nil {
		t.Fatal(err)
	}
	h := newHole(t, u.Host)
	a := start(t, "--kubeconfig="+h.through(t, c.lab.Kubeconfig(), c.lab.Server()), "--namespace="+c.namespace, "--selector=x=y", "--stall-deadline=4s")
	a.wantFiles(map[string]string{"one": "1", "two": "1"})
	h.open.Store(true)
	c.delete("one")
	c.apply(object{kind: "ConfigMap", name: "two", labels: on, data: map[string]string{"two": "2"}})
	a.wantProbe("/healthz", http.StatusServiceUnavailable)
	h.open.Store(false)
	a.wantFiles(map[string]string{"two": "2"})
}

// An agent that is killed at any point, at the nth system call of each kind
// that changes the disk, leaves a whole set behind; the next one converges, tells
// the application and cleans up. The new set is good, or is refused by the
// application and rolled back.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	need(t, "strace", "strace")
	for name, calls := range map[string][]string{
		"good":    {"mkdirat", "linkat", "symlinkat", "renameat", "renameat2", "unlinkat", "fchmod"},
		"refused": {"renameat", "renameat2"},
	} {
		for _, layout := range []string{"links", "exchange"} {
			t.Run(name+" "+layout, func(t *testing.T) {
				t.Parallel()
				killed := 0
				for _, call := range calls {
					for n := 1; n < 60; n++ {
						if !(killing{layout: layout, refused: name == "refused"}).at(t, call, n) {
							break
						}
						killed++
					}
				}
				t.Logf("killed at %d points", killed)
				if killed < 2*len(calls) {
					t.Errorf("only %d points were met", killed)
				}
			})
		}
	}
}

// killing is a change from one set to another by an agent that does not survive
// it.
type killing struct {
	layout  string
	refused bool // the application does not take the new set
}

// at kills the agent at the nth call and checks what is left. It says whether
// there was an nth call.
func (k killing) at(t *testing.T, call string, n int) bool {
	t.Helper()
	dir := t.TempDir()
	source, root, told := filepath.Join(dir, "source"), filepath.Join(dir, "volume", "config"), filepath.Join(dir, "told")
	takes, patient := "true", "30s"
	if k.refused {
		takes, patient = "grep -q old "+told, "500ms"
	}
	args := []string{
		"--directory=" + source, "--root=" + root, "--layout=" + k.layout, "--keep-old=0", "--quiet=0",
		"--notify=exec:sh -c 'cat " + root + "/a " + root + "/b > " + told + "'",
		"--confirm=exec:sh -c '" + takes + "'", "--confirm-timeout=" + patient, "--roll-back", "--max-failures=1", "--retry=50ms",
	}
	where := fmt.Sprintf("killed at %s %d", call, n)
	write(t, filepath.Join(source, "a"), "old")
	write(t, filepath.Join(source, "b"), "old")
	if _, stderr, code := labtest.RunCommand(t, labtest.Command{Path: binary(t), Args: append(args, "--once")}); code != 0 {
		t.Fatal(stderr)
	}
	write(t, filepath.Join(source, "a"), "new")
	write(t, filepath.Join(source, "b"), "new")
	write(t, filepath.Join(source, "sub", "c"), "new")
	if k.overwrites() {
		args = append(args, "--overwrite")
		write(t, filepath.Join(source, "taken"), "new")
		write(t, filepath.Join(root, "taken"), "foreign")
	}
	// -D: the program that is started is the agent, and the tracer is beside it.
	strace := []string{"-D", "-f", "-qq", "-o", "/dev/null", "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), binary(t)}
	victim := labtest.StartCommand(t, labtest.Command{Path: "strace", Args: append(strace, args...)})
	met := k.survives(t, victim, root)
	a, b := read(root+"/a"), read(root+"/b")
	if a != b || (a != "old" && a != "new") {
		t.Errorf("%s: a is %q, b is %q", where, a, b)
	}
	if taken := read(root + "/taken"); k.overwrites() && taken != "foreign" && taken != "new" {
		t.Errorf("%s: a file of somebody else is %q", where, taken)
	}
	next := labtest.StartCommand(t, labtest.Command{Path: binary(t), Args: args})
	labtest.Eventually(t, patience, func() (bool, string) {
		return k.settled(root), fmt.Sprintf("%s: %+v\n%s", where, k.status(root), next.Stderr())
	})
	next.Stop(t)
	k.wantEnd(t, where, root, told)
	return met
}

// overwrites says that the new set takes the place of somebody else's file.
func (k killing) overwrites() bool { return k.layout == "links" && !k.refused }

// survives waits until the agent is killed or has done everything; it says
// whether it was killed.
func (k killing) survives(t *testing.T, victim *labtest.Running, root string) bool {
	t.Helper()
	killed := false
	labtest.Eventually(t, patience, func() (bool, string) {
		select {
		case <-victim.Done():
			killed = true
			return true, ""
		default:
			return k.settled(root), victim.Stderr()
		}
	})
	if !killed {
		victim.Stop(t)
	}
	return killed
}

func (k killing) status(root string) (s podsync.Status) {
	raw, err := os.ReadFile(filepath.Join(volume.StateDir(root, volume.Layout(k.layout)), podsync.StatusFile))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return podsync.Status{}
	}
	return s
}

// settled says that the new set is confirmed, or barred and the old one is.
func (k killing) settled(root string) bool {
	s := k.status(root)
	if k.refused {
		return s.Reason == podsync.RolledBack && s.Confirmed == s.Published
	}
	return s.Reason == podsync.InStep && s.Observed == s.Published && s.Confirmed == s.Published && s.Previous != ""
}

// wantEnd compares what is left in the end: one set, of which the application
// was told last, and nothing beside it.
func (k killing) wantEnd(t *testing.T, where, root, told string) {
	t.Helper()
	want, visible := "new", "map[a:new b:new sub/c:new]"
	if k.overwrites() {
		visible = "map[a:new b:new sub/c:new taken:new]"
	}
	if k.refused {
		want, visible = "old", "map[a:old b:old]"
	}
	if got := fmt.Sprint(files(root)); got != visible {
		t.Errorf("%s: files %s, want %s", where, got, visible)
	}
	if got := read(told); got != want+want {
		t.Errorf("%s: the application was told of %q, want the %s set", where, got, want)
	}
	for _, pattern := range []string{"*tmp*", "*/*tmp*", "*/*/*tmp*", "*/probe-*", "*/*/objects/new-*"} {
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(root), pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind %v (%v)", where, left, err)
		}
	}
}

func read(name string) string {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Killed while it checks, tells or asks: the next agent finishes the delivery.
func TestKilledWhileTalkingToTheApplication(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"check", "notify", "confirm"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source, root, mark, told := filepath.Join(dir, "source"), filepath.Join(dir, "config"), filepath.Join(dir, "mark"), filepath.Join(dir, "told")
			write(t, filepath.Join(source, "a"), "1")
			// The first time the stage kills its parent, the agent.
			command := func(name, then string) string {
				if name != stage {
					return "sh -c '" + then + "'"
				}
				return "sh -c 'if [ -f " + mark + " ]; then rm " + mark + "; kill -9 $PPID; exit 1; fi; " + then + "'"
			}
			flags := []string{
				"--directory=" + source, "--check=" + command("check", "true"),
				"--notify=exec:" + command("notify", "cat "+root+"/a > "+told), "--confirm=exec:" + command("confirm", "test -f "+told),
			}
			a := startIn(t, root, flags...)
			a.wantFiles(map[string]string{"a": "1"})
			write(t, mark, "")
			write(t, filepath.Join(source, "a"), "2")
			if code := a.ExitCode(t, patience); code != 137 && code != -1 {
				t.Fatalf("the agent was not killed: code %d\n%s", code, a.Stderr())
			}
			next := startIn(t, root, flags...)
			next.wantConfirmed()
			if got := read(told); got != "2" {
				t.Errorf("the application was told of %q", got)
			}
		})
	}
}
