// Package agentkit runs lockstep-sync in tests, in the test's own process or as the built
// program, and checks its files, probes, metrics, status and log.
package agentkit

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Patience bounds every wait for something that must happen. It is long because a slow
// machine is not a wrong program.
const Patience = 5 * time.Minute

// Agent is a running agent with the places where a test can observe it.
type Agent struct {
	*labtest.Running

	// Root is where the agent publishes, Addr where it serves its probes.
	Root, Addr string

	t testing.TB
}

// New wraps an agent that the test has started itself.
func New(t testing.TB, running *labtest.Running, root, addr string) *Agent {
	t.Helper()
	return &Agent{Running: running, Root: root, Addr: addr, t: t}
}

// Run runs an agent in this process, with a new root and health address. It can't have an
// application as its child: it would take over every orphan of the test.
func Run(t testing.TB, args ...string) *Agent {
	t.Helper()
	return RunIn(t, NewRoot(t), args...)
}

// RunIn is [Run] with an existing root.
func RunIn(t testing.TB, root string, args ...string) *Agent {
	t.Helper()
	addr := FreeAddr(t)
	return New(t, InProcess(t, Call{Args: native(root, addr, args)}), root, addr)
}

// Start starts the built program, with a new root and health address.
func Start(t testing.TB, args ...string) *Agent {
	t.Helper()
	return StartIn(t, NewRoot(t), args...)
}

// StartIn is [Start] with an existing root.
func StartIn(t testing.TB, root string, args ...string) *Agent {
	t.Helper()
	addr := FreeAddr(t)
	return New(t, labtest.StartCommand(t, labtest.Command{Path: Program(t), Args: native(root, addr, args)}), root, addr)
}

// native are the flags of every agent that isn't started by a predecessor's command line.
func native(root, addr string, args []string) []string {
	return append([]string{"--root=" + root, "--health-addr=" + addr, "--quiet=0"}, args...)
}

// NewRoot is a directory that doesn't exist yet.
func NewRoot(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "config")
}

// Program is the path of the built agent.
func Program(t testing.TB) string {
	t.Helper()
	return labtest.Binary(t, "./cmd/lockstep-sync")
}

// FreeAddr is an address on loopback that nobody listens on.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + FreePort(t)
}

// FreePort is a port that nobody listens on.
func FreePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(labtest.FreePort(t))
}
