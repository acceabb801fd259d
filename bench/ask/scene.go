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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/figures"
	"github.com/lockstep-dev/lockstep/internal/adapter/ledger"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// own is the namespace of the controller.
const own = "lockstep-system"

// scene is a control plane with many workloads and the built controller, and a proxy in
// front that counts requests.
type scene struct {
	plane      *labtest.Cluster
	client     client.Client
	controller *process.Process
	proxy      *httptest.Server
	requests   *counter
	dir        string
	binary     string
}

func openScene(ctx context.Context) (*scene, error) {
	s := &scene{requests: &counter{}}
	var err error
	if s.dir, err = os.MkdirTemp("", "lockstep-bench-ask-"); err != nil {
		return nil, err
	}
	if s.plane, err = labtest.Start(ctx, labtest.Options{Progress: os.Stderr}); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// connect builds the program and puts the proxy in front of the API server.
func (s *scene) connect(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	if s.client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	s.proxy = httptest.NewServer(s.requests.count(&httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
	}))
	root, err := program.Root()
	if err != nil {
		return err
	}
	s.binary = filepath.Join(s.dir, "lockstep")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/lockstep")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build lockstep: %w\n%s", err, out)
	}
	return os.WriteFile(filepath.Join(s.dir, "kubeconfig"), []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, s.proxy.URL)), 0o600)
}

func (s *scene) close() error {
	var err error
	if s.controller != nil {
		err = s.controller.Kill()
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	return errors.Join(err, s.plane.Stop(), os.RemoveAll(s.dir))
}

// fill creates the workloads, waits until they are followed, and makes some of them wait.
func (s *scene) fill(ctx context.Context) error {
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}}); err != nil {
		return err
	}
	for n := range namespaces {
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(n)}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(n), Name: "app"}, Data: map[string]string{"level": "1"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(n), Name: "held"}, Data: map[string]string{"level": "1"}},
		} {
			if err := s.client.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	if err := figures.CreateAll(ctx, s.client, 0, workloads, func(i int) client.Object { return deployment(i) }); err != nil {
		return err
	}
	var err error
	if s.controller, err = process.Start(process.Spec{
		Path: s.binary, Env: os.Environ(),
		Args: []string{
			"controller", "--kubeconfig", s.plane.Kubeconfig(), "--own-namespace", own,
			"--metrics-addr", "0", "--probe-addr", "0", "--quiet", "1s", "--log-level", "error",
		},
	}); err != nil {
		return err
	}
	if err := s.await(ctx, func(on ledger.Stored) bool { return len(on.Entries) == workloads }); err != nil {
		return err
	}
	for n := range namespaces {
		changed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(n), Name: "held"}, Data: map[string]string{"level": "2"}}
		if err := s.client.Update(ctx, changed); err != nil {
			return err
		}
	}
	return s.await(ctx, func(on ledger.Stored) bool {
		waiting := 0
		for _, e := range on.Entries {
			if e.Decision.Reason == input.Held {
				waiting++
			}
		}
		return waiting == held
	})
}

// await waits until the record fulfils a condition.
func (s *scene) await(ctx context.Context, done func(ledger.Stored) bool) error {
	deadline := time.Now().Add(10 * time.Minute)
	for {
		on, err := ledger.ReadAll(ctx, s.client, client.ObjectKey{Namespace: own, Name: "lockstep-state"}, "")
		switch {
		case err != nil:
			return err
		case done(on):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the record has %d workloads, and not what was waited for", len(on.Entries))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func namespace(n int) string { return fmt.Sprint("team-", n) }

// deployment uses one ConfigMap; every tenth is held.
func deployment(i int) *appsv1.Deployment {
	labels := map[string]string{"app": fmt.Sprint("app-", i)}
	annotations, source := map[string]string{settings.Reload: "auto"}, "app"
	if i%(workloads/held) == 0 {
		annotations[settings.Hold], source = "release freeze", "held"
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(i / (workloads / namespaces)), Name: fmt.Sprint("app-", i), Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "registry.example/app:1",
					EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: source}}}},
				}}},
			},
		},
	}
}

// answer is the output and the cost of one command.
type answer struct {
	took          time.Duration
	peakMiB       int
	rows, waiting int
}

// ask runs the command once.
func (s *scene) ask(ctx context.Context) (answer, error) {
	cmd := exec.CommandContext(ctx, s.binary, "status", "-A", "-o", "json", "--own-namespace", own, "--kubeconfig", filepath.Join(s.dir, "kubeconfig"))
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
