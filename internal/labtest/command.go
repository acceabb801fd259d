package labtest

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// exitTimeout bounds the wait for a program to end. It is long because tests share the cores
// with each other.
const exitTimeout = 2 * time.Minute

// Command is a program to run in a test.
type Command struct {
	Path string
	Args []string
	Env  []string // added to the environment of the test
	Dir  string   // empty means that of the test
}

// Running is a started command: a process, or a function of the test process.
type Running struct {
	running
	stdout output
	stderr output
}

// running is the interface of a process and a function.
type running interface {
	Name() string
	Done() <-chan struct{}
	// ExitCode waits for the end.
	ExitCode() int
	Signal(signal syscall.Signal) error
}

// output collects a program's output, while it may be read.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes a piece of output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// StartCommand starts a program that is killed when the test ends, even when the test is
// killed. All its descendants are killed too, except those in another session. Its output is
// shown when the test fails.
func StartCommand(t testing.TB, command Command) *Running {
	t.Helper()
	guard, err := guardOnce()
	if err != nil {
		t.Fatal(err)
	}
	r := &Running{}
	p, err := process.Start(process.Spec{
		Path: command.Path, Args: command.Args, Dir: command.Dir,
		Env:    append(os.Environ(), command.Env...),
		Stdout: &r.stdout, Stderr: &r.stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.running = p
	session := sessionOf(p.ID())
	t.Cleanup(func() {
		if err := errors.Join(p.Kill(), guard.drop(session)); err != nil {
			t.Error(err)
		}
		r.showIfFailed(t, command.Args)
	})
	if err := guard.hold(session); err != nil {
		t.Fatal(err)
	}
	return r
}

// showIfFailed shows the output of a command with these arguments when the test has failed.
func (r *Running) showIfFailed(t testing.TB, args []string) {
	t.Helper()
	if t.Failed() {
		t.Logf("%s %q wrote\n%s%s", r.Name(), withoutSecrets(args), r.Stdout(), r.Stderr())
	}
}

// withoutSecrets is a command line without the values of flags that contain credentials.
func withoutSecrets(args []string) []string {
	shown := slices.Clone(args)
	for i, arg := range shown {
		name, _, inOne := strings.Cut(arg, "=")
		if name != "--token" && name != "--password" {
			continue
		}
		if inOne {
			shown[i] = name + "=…"
		} else if i+1 < len(shown) {
			shown[i+1] = "…"
		}
	}
	return shown
}

// RunCommand runs a program to its end, which must come within exitTimeout.
func RunCommand(t testing.TB, command Command) (stdout, stderr string, code int) {
	t.Helper()
	r := StartCommand(t, command)
	code = r.ExitCode(t, exitTimeout)
	return r.Stdout(), r.Stderr(), code
}

// Stdout is the program's standard output so far.
func (r *Running) Stdout() string { return r.stdout.String() }

// Stderr is the program's standard error so far.
func (r *Running) Stderr() string { return r.stderr.String() }

// PID is the process ID, 0 for a function.
func (r *Running) PID() int {
	p, ok := r.running.(*process.Process)
	if !ok {
		return 0
	}
	return p.ID().PID
}

// Signal sends a signal, such as SIGTERM, SIGSTOP or SIGKILL, to the program but not to its
// children. A function accepts only signals that request its end.
func (r *Running) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := r.running.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop sends SIGTERM, as Kubernetes would, and returns the program's exit code.
func (r *Running) Stop(t testing.TB) int {
	t.Helper()
	r.Signal(t, syscall.SIGTERM)
	return r.ExitCode(t, exitTimeout)
}

// ExitCode waits for the program's end and returns its exit code; 128 and the
// signal's number for one that was killed. The test fails when it still runs
// after timeout.
func (r *Running) ExitCode(t testing.TB, timeout time.Duration) int {
	t.Helper()
	select {
	case <-r.Done():
		return r.running.ExitCode()
	case <-time.After(timeout):
		t.Fatalf("%s still runs after %s", r.Name(), timeout)
		return -1
	}
}
