package testkit

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Controller is a running controller: the built program, or one in the test process.
type Controller struct {
	*labtest.Running

	probes string
}

// StartController runs the built program on a world, without leader election and with further
// flags; package inprocess does the same in the test process. Only one may act on a world at a
// time, unless they elect a leader. It follows the application's namespace, unless the flags select
// others.
func (w *World) StartController(t testing.TB, flags ...string) *Controller {
	t.Helper()
	return w.StartControllerAs(t, w.Cluster.Kubeconfig(), flags...)
}

// StartControllerAs does the same with the permissions and the address of a kubeconfig.
func (w *World) StartControllerAs(t testing.TB, kubeconfig string, flags ...string) *Controller {
	t.Helper()
	if w.Clock != 0 {
		t.Fatal("the clock of the built program can't be off: start the controller with package inprocess")
	}
	command := labtest.Command{Path: labtest.Binary(t, "./cmd/lockstep"), Args: w.ControllerArgs(kubeconfig, flags...)}
	for name, value := range FastDetection() {
		command.Env = append(command.Env, name+"="+value)
	}
	return Started(t, labtest.StartCommand(t, command))
}

// ControllerArgs is the command line of a controller on a world. Tests change a source again and
// again, so it isn't damped unless the flags ask for it.
func (w *World) ControllerArgs(kubeconfig string, flags ...string) []string {
	args := []string{
		"controller", "--kubeconfig", kubeconfig, "--own-namespace", w.Own,
		"--metrics-addr", "0", "--probe-addr", "127.0.0.1:0", "--leader-elect=false", "--damping", "0",
	}
	if !slices.Contains(flags, "--namespace-selector") {
		args = append(args, "--namespaces", w.Namespace)
	}
	return slices.Concat(args, flags)
}

// FastDetection is the environment in which a client detects a dead connection in seconds
// instead of a minute. A connection to a busy API server isn't dead.
func FastDetection() map[string]string {
	return map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "1", "HTTP2_PING_TIMEOUT_SECONDS": "15"}
}

// Started is a program that serves probes, however it was started.
func Started(t testing.TB, r *labtest.Running) *Controller {
	t.Helper()
	c := &Controller{Running: r}
	c.probes = c.awaitProbes(t)
	return c
}

// StartReady runs the built program and waits until it is ready.
func (w *World) StartReady(t testing.TB, flags ...string) *Controller {
	t.Helper()
	c := w.StartController(t, flags...)
	c.AwaitReady(t, true)
	return c
}

// awaitProbes reads from the log where the probes are served.
func (c *Controller) awaitProbes(t testing.TB) string {
	t.Helper()
	line := regexp.MustCompile(`probes are served"?.*?address"?[=:]"?([0-9.:]+)`)
	var address string
	labtest.Eventually(t, Patience, func() (bool, string) {
		select {
		case <-c.Done():
			t.Fatalf("the controller ended before it served probes:\n%s", c.Stderr())
		default:
		}
		found := line.FindStringSubmatch(c.Stderr())
		if found == nil {
			return false, "the log does not say where probes are served:\n" + c.Stderr()
		}
		address = found[1]
		return true, ""
	})
	return address
}

// ProbePort is the port that serves the probes.
func (c *Controller) ProbePort(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(c.probes)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Probe requests a path of the probe server: "/readyz?verbose".
func (c *Controller) Probe(t testing.TB, path string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.probes+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// AwaitVerbose waits until the verbose readiness contains all the texts.
func (c *Controller) AwaitVerbose(t testing.TB, texts ...string) {
	t.Helper()
	labtest.Eventually(t, Patience, func() (bool, string) {
		_, got := c.Probe(t, "/readyz?verbose")
		return containsAll(got, texts), fmt.Sprintf("want %q in\n%s", texts, got)
	})
}

// AwaitReady waits until the controller is ready, or is not.
func (c *Controller) AwaitReady(t testing.TB, want bool) {
	t.Helper()
	status := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[want]
	labtest.Eventually(t, Patience, func() (bool, string) {
		code, text := c.Probe(t, "/readyz")
		return code == status, fmt.Sprintf("/readyz answers %d, want %d: %s", code, status, text)
	})
}
