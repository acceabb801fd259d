package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/bench/fleet"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// scene is a fleet of workloads, and a proxy in front of the API server that counts requests.
type scene struct {
	*fleet.Fleet

	proxy    *httptest.Server
	requests *counter
}

func openScene(ctx context.Context) (*scene, error) {
	f, err := fleet.Open(ctx, "ask")
	if err != nil {
		return nil, err
	}
	s := &scene{Fleet: f, requests: &counter{}}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// connect puts the proxy in front of the API server.
func (s *scene) connect() error {
	transport, err := rest.TransportFor(s.Config)
	if err != nil {
		return err
	}
	server, err := url.Parse(s.Config.Host)
	if err != nil {
		return err
	}
	s.proxy = httptest.NewServer(s.requests.count(&httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
	}))
	return os.WriteFile(filepath.Join(s.Dir, "kubeconfig"), []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, s.proxy.URL)), 0o600)
}

func (s *scene) close() error {
	if s.proxy != nil {
		s.proxy.Close()
	}
	return s.Close()
}

// answer is the output and the cost of one command.
type answer struct {
	took          time.Duration
	peakMiB       int
	rows, waiting int
}

// ask runs the command once.
func (s *scene) ask(ctx context.Context) (answer, error) {
	cmd := exec.CommandContext(ctx, s.Binary, "status", "-A", "-o", "json", "--controller-namespace", fleet.Own, "--kubeconfig", filepath.Join(s.Dir, "kubeconfig"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return answer{}, fmt.Errorf("lockstep status: %w\n%s", err, stderr.Bytes())
	}
	a := answer{took: time.Since(began)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		a.peakMiB = int(usage.Maxrss >> 10) // in KiB on Linux
	}
	var said struct {
		Workloads []struct {
			State struct {
				Reason input.Reason `json:"reason"`
			} `json:"state"`
		} `json:"workloads"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
		return answer{}, err
	}
	a.rows = len(said.Workloads)
	for _, w := range said.Workloads {
		if w.State.Reason != input.InStep {
			a.waiting++
		}
	}
	return a, nil
}

// counter counts requests by resource.
type counter struct {
	mu  sync.Mutex
	all map[string]int
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = map[string]int{}
}

func (c *counter) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

func (c *counter) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		resource := parts[len(parts)-1]
		if len(parts) <= 3 && !strings.HasSuffix(resource, "s") {
			resource = "discovery"
		}
		c.mu.Lock()
		if c.all != nil {
			c.all[resource]++
		}
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}
