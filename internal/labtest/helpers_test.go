package labtest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// failing is a test whose failure is looked at.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	panic(f) // Like the real one, it does not return.
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// failure is what a helper that must fail says.
func failure(t *testing.T, helper func(t testing.TB)) string {
	t.Helper()
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		helper(f)
	}()
	return f.message
}

func TestEventuallyFailsWithTheLastReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		got := failure(t, func(t testing.TB) {
			t.Helper()
			labtest.Eventually(t, 100*time.Millisecond, func() (bool, string) {
				calls++
				return false, fmt.Sprintf("reason %d", calls)
			})
		})
		if want := fmt.Sprintf("not within 100ms: reason %d", calls); got != want || calls < 2 {
			t.Errorf("the failure after %d calls is %q, want %q", calls, got, want)
		}
	})
}

func TestEventuallyEndsWhenDone(t *testing.T) {
	calls := 0
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		calls++
		return calls == 3, fmt.Sprintf("checked %d times, want 3", calls)
	})
	if calls != 3 {
		t.Errorf("checked %d times, want 3", calls)
	}
}

func TestCommandOutputAndExitCode(t *testing.T) {
	script := `trap 'echo bye >&2; exit 3' TERM; echo "$GREETING"; while :; do sleep 0.01; done`
	r := labtest.StartCommand(t, labtest.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"GREETING=hello"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		return r.Stdout() == "hello\n", fmt.Sprintf("stdout is %q", r.Stdout())
	})
	if code := r.Stop(t); code != 3 || r.Stderr() != "bye\n" {
		t.Errorf("exit code %d, stderr %q, want 3 and bye", code, r.Stderr())
	}
}

func TestCommandEndsWithItsTest(t *testing.T) {
	var r *labtest.Running
	t.Run("inner", func(t *testing.T) {
		r = labtest.StartCommand(t, labtest.Command{Path: "/bin/sleep", Args: []string{"600"}})
	})
	if code := r.ExitCode(t, time.Minute); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d, want that of a killed process", code)
	}
}

func TestBinaryBuildsAProgramOfTheRepository(t *testing.T) {
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{Path: labtest.Binary(t, "./lab"), Args: []string{"--help"}})
	if code != 0 || !strings.Contains(stdout, "lab up") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// leaving is a package whose tests leave a process behind, or do not.
type leaving struct {
	t     *testing.T
	leave bool
}

func (l leaving) Run() int {
	path := "/elsewhere"
	if l.leave {
		path = os.TempDir() // as RunTests has set it
	}
	labtest.StartCommand(l.t, labtest.Command{Path: "/bin/sh", Args: []string{"-c", "sleep 600; : " + path}})
	return 0
}

func TestRunTestsFailsWhenAProcessIsLeft(t *testing.T) {
	base := os.TempDir()
	for leave, want := range map[bool]int{false: 0, true: 1} {
		t.Setenv("TMPDIR", base)
		if code := labtest.RunTests(leaving{t, leave}); code != want {
			t.Errorf("exit code %d when a process is left: %t, want %d", code, leave, want)
		}
	}
}

// TestFunction: a command in the test process has the output, the exit code and the end of
// a process, and refuses what only a process can do.
func TestFunction(t *testing.T) {
	run := func(ctx context.Context, stdout, stderr io.Writer) int {
		_, _ = io.WriteString(stdout, "hello\n")
		<-ctx.Done()
		_, _ = io.WriteString(stderr, "bye\n")
		return 3
	}
	var left *labtest.Running
	t.Run("inner", func(t *testing.T) {
		left = labtest.StartFunction(t, labtest.Function{Name: "greeter", Run: run})
		r := labtest.StartFunction(t, labtest.Function{Name: "greeter", Run: run})
		labtest.Eventually(t, patience, func() (bool, string) {
			return r.Stdout() == "hello\n", fmt.Sprintf("stdout is %q", r.Stdout())
		})
		says := failure(t, func(t testing.TB) {
			t.Helper()
			r.Signal(t, syscall.SIGKILL)
		})
		if !strings.Contains(says, "start it as a process") {
			t.Errorf("a signal that only a process can take: %q", says)
		}
		if code := r.Stop(t); code != 3 || r.Stderr() != "bye\n" {
			t.Errorf("exit code %d, stderr %q, want 3 and bye", code, r.Stderr())
		}
	})
	select {
	case <-left.Done():
	default:
		t.Error("it still runs after its test")
	}
}
