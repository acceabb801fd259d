package cli_test

import (
	"context"
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

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
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
	agentkit.Write(t, path, strings.ReplaceAll(string(raw), server, "https://"+h.listener.Addr().String()))
	return path
}

// A watch that leads into a black hole makes the agent unhealthy within its
// deadline, and it recovers by itself.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // a stall deadline passes
	c := newCluster(t)
	c.configMap("app", map[string]string{"a": "1"})
	u, err := url.Parse(c.lab.Server())
	if err != nil {
		t.Fatal(err)
	}
	h := newHole(t, u.Host)
	a := agentkit.Run(t, "--kubeconfig="+h.through(t, c.lab.Kubeconfig(), c.lab.Server()), "--configmap="+c.namespace+"/app", "--stall-deadline=4s")
	a.WantFiles(map[string]string{"a": "1"})
	a.WantProbe("/healthz", http.StatusOK)

	h.open.Store(true)
	c.configMap("app", map[string]string{"a": "2"})
	body := a.WantProbe("/healthz", http.StatusServiceUnavailable)
	if !strings.Contains(body, "configmap/"+c.namespace+"/app has been silent for") {
		t.Errorf("healthz says %s", body)
	}
	a.WantProbe("/healthz/application", http.StatusOK)
	a.WantFiles(map[string]string{"a": "1"})

	h.open.Store(false)
	a.WantFiles(map[string]string{"a": "2"})
	a.WantProbe("/healthz", http.StatusOK)
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
	labtest.In(t, labtest.TierAll) // a stall deadline passes
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
	agentkit.Write(t, kubeconfig, "{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x}}], clusters: [{name: x, cluster: {server: '"+proxy.URL+"'}}]}")
	a := agentkit.Run(t, "--kubeconfig="+kubeconfig, "--configmap="+c.namespace+"/app", "--stall-deadline=4s")
	a.WantFiles(map[string]string{"a": "1"})
	a.WantProbe("/healthz/source", http.StatusOK)
	transport.swallow.Store(true)
	c.configMap("app", map[string]string{"a": "2"})
	a.WantProbe("/healthz/source", http.StatusServiceUnavailable)
	transport.swallow.Store(false)
	a.WantFiles(map[string]string{"a": "2"})
	a.WantProbe("/healthz/source", http.StatusOK)
}

// Objects that are changed and deleted while the API server is away are found
// when it is back.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll) // a stall deadline passes
	c := newCluster(t)
	on := map[string]string{"x": "y"}
	c.apply(object{kind: "ConfigMap", name: "one", labels: on, data: map[string]string{"one": "1"}})
	c.apply(object{kind: "ConfigMap", name: "two", labels: on, data: map[string]string{"two": "1"}})
	u, err := url.Parse(c.lab.Server())
	if err != nil {
		t.Fatal(err)
	}
	h := newHole(t, u.Host)
	a := agentkit.Run(t, "--kubeconfig="+h.through(t, c.lab.Kubeconfig(), c.lab.Server()), "--namespace="+c.namespace, "--selector=x=y", "--stall-deadline=4s")
	a.WantFiles(map[string]string{"one": "1", "two": "1"})
	h.open.Store(true)
	c.delete("one")
	c.apply(object{kind: "ConfigMap", name: "two", labels: on, data: map[string]string{"two": "2"}})
	a.WantProbe("/healthz", http.StatusServiceUnavailable)
	h.open.Store(false)
	a.WantFiles(map[string]string{"two": "2"})
}

// Killed while it checks, tells or asks: the next agent finishes the delivery.
func TestKilledWhileTalkingToTheApplication(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"check", "notify", "confirm"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source, root, mark, told := filepath.Join(dir, "source"), filepath.Join(dir, "config"), filepath.Join(dir, "mark"), filepath.Join(dir, "told")
			agentkit.Write(t, filepath.Join(source, "a"), "1")
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
			a := agentkit.StartIn(t, root, flags...)
			a.WantFiles(map[string]string{"a": "1"})
			agentkit.Write(t, mark, "")
			agentkit.Write(t, filepath.Join(source, "a"), "2")
			if code := a.ExitCode(t, agentkit.Patience); code != 137 && code != -1 {
				t.Fatalf("the agent was not killed: code %d\n%s", code, a.Stderr())
			}
			next := agentkit.StartIn(t, root, flags...)
			next.WantConfirmed()
			if got := agentkit.Read(told); got != "2" {
				t.Errorf("the application was told of %q", got)
			}
		})
	}
}
