package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = time.Minute

func TestParseSignal(t *testing.T) {
	for in, want := range map[string]unix.Signal{"HUP": 1, "SIGHUP": 1, "sighup": 1, "1": 1, "usr2": 12, "15": 15} {
		if got, err := ParseSignal(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "0", "65", "-1", "FOO", "SIG"} {
		if got, err := ParseSignal(in); err == nil {
			t.Errorf("%q became %v", in, got)
		}
	}
}

func TestRunReportsOutputAndFailure(t *testing.T) {
	p := NewParent()
	output, err := p.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo $X; echo wrong >&2; exit 3"}, Env: []string{"X=y"}})
	if output != "y\nwrong\n" || err == nil || err.Error() != "run sh: exit status 3" {
		t.Errorf("output %q, error %v", output, err)
	}
	if _, err := p.Run(t.Context(), Command{Args: []string{"/does/not/exist"}}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// The end of a command is the end of everything that it started.
func TestRunKillsTheGroup(t *testing.T) {
	pidfile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := NewParent().Run(ctx, Command{Args: []string{"sh", "-c", "sleep 1000 & echo $! > " + pidfile + "; wait"}})
		done <- err
	}()
	var pid int
	labtest.Eventually(t, patience, func() (bool, string) {
		var err error
		pid, _, err = readPidfile(pidfile)
		return err == nil, fmt.Sprint(err)
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		return !alive(pid), fmt.Sprintf("process %d, the command's child, still runs", pid)
	})
}

// A command has its time and no more.
func TestRunEndsAfterTheTimeout(t *testing.T) {
	_, err := NewParent().Run(t.Context(), Command{Args: []string{"sleep", "1000"}, Timeout: time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func alive(pid int) bool {
	for _, p := range allProcesses() {
		if p.pid == pid {
			return !p.zombie
		}
	}
	return false
}

func TestTailKeepsTheEnd(t *testing.T) {
	w := &tail{limit: 5}
	for _, s := range []string{"abc", "defg", "0123456789"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if w.String() != "56789" {
		t.Errorf("kept %q", w)
	}
}

func TestParseStat(t *testing.T) {
	got, ok := parseStat("12 (a) b (c) S 7 12 12 0 -1")
	if !ok || got.pid != 12 || got.parent != 7 || got.comm != "a) b (c" || got.zombie {
		t.Errorf("%+v %v", got, ok)
	}
	if got, ok := parseStat("12 (x) Z 1"); !ok || !got.zombie {
		t.Errorf("%+v %v", got, ok)
	}
	for _, s := range []string{"", "12", "x (a) S 1", "1 (a S 1", "1 (a) S"} {
		if _, ok := parseStat(s); ok {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestHandled(t *testing.T) {
	const status = "Name:\tx\nSigPnd:\t0000000000000200\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000000800\nSigCgt:\t0000000000000001\n"
	for sig, want := range map[unix.Signal]bool{unix.SIGHUP: true, unix.SIGUSR2: true, unix.SIGINT: false, unix.SIGUSR1: false} {
		if got := handled(status, sig); got != want {
			t.Errorf("%v: %v", sig, got)
		}
	}
}

func TestWaited(t *testing.T) {
	const (
		resting = "State:\tS (sleeping)\nSigBlk:\t0000000000000001\n"
		forking = "State:\tD (disk sleep)\nSigBlk:\tfffffffe7ffbfeff\n"
		running = "State:\tR (running)\nSigBlk:\t0000000000000001\n"
		other   = "State:\tS (sleeping)\nSigBlk:\t0000000000000000\n"
	)
	for name, c := range map[string]struct {
		why     string
		threads []string
		want    bool
	}{
		"sigwait":     {"it rests and waits for the signal", []string{resting, resting}, true},
		"busy":        {"one thread waits while another works", []string{running, resting}, true},
		"one thread":  {"the other one would get it and die", []string{resting, other}, false},
		"vfork":       {"it blocks everything until its child runs", []string{forking}, false},
		"not at rest": {"it may be about to start another", []string{running}, false},
		"gone":        {"there is nobody", nil, false},
	} {
		if got := waited(c.threads, unix.SIGHUP); got != c.want {
			t.Errorf("%s: %v, although %s", name, got, c.why)
		}
	}
}

// A process that blocks a signal for good gets it.
func TestABlockedSignalIsSent(t *testing.T) {
	c := NewChild(NewParent(), ChildOptions{Args: []string{"env", "--block-signal=HUP", "sleep", "1000"}, StopSignal: unix.SIGTERM, Grace: time.Minute})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Stop(t.Context())
	labtest.Eventually(t, patience, func() (bool, string) {
		err := c.Notify(unix.SIGHUP)
		return err == nil && c.Running(), fmt.Sprint(err)
	})
	if !inMask(threads(c.PID())[0], "ShdPnd", unix.SIGHUP) {
		t.Error("the signal is not there")
	}
}

// Who is not there yet is told apart from who refuses.
func TestAbsentProcesses(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "gone": "4194303\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]Target{
		"no pidfile":    {Pidfile: filepath.Join(dir, "none")},
		"empty pidfile": {Pidfile: filepath.Join(dir, "empty")},
		"ended":         {Pidfile: filepath.Join(dir, "gone")},
		"no such name":  {Name: "lockstep-nobody"},
	} {
		if _, absent := errors.AsType[*AbsentError](Signal(target, unix.SIGHUP)); !absent {
			t.Errorf("%s: not said to be absent", name)
		}
	}
	if _, absent := errors.AsType[*AbsentError](NewChild(NewParent(), ChildOptions{}).Notify(unix.SIGHUP)); !absent {
		t.Error("a child that does not run is not said to be absent")
	}
	sleeper := NewChild(NewParent(), ChildOptions{Args: []string{"sleep", "1000"}, StopSignal: unix.SIGTERM, Grace: time.Minute})
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleeper.Stop(t.Context())
	if _, absent := errors.AsType[*AbsentError](sleeper.Notify(unix.SIGHUP)); !absent {
		t.Error("a process without a handler is not said to be absent")
	}
}

// A predecessor's users may rely on a signal that ends an application without a handler.
func TestAnySignal(t *testing.T) {
	sleeper := NewChild(NewParent(), ChildOptions{Args: []string{"sleep", "1000"}, StopSignal: unix.SIGTERM, Grace: time.Minute, AnySignal: true})
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleeper.Stop(t.Context())
	if err := sleeper.Notify(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-sleeper.Done()
	if code := sleeper.ExitCode(); code != 128+1 {
		t.Errorf("exit code %d", code)
	}
}

// A pidfile that is older than the process of its number is one that nobody
// removed: the number went to somebody else, who would get the signal.
func TestAStalePidfile(t *testing.T) {
	child := NewChild(NewParent(), ChildOptions{Args: []string{"sh", "-c", "trap : HUP; while :; do sleep 1000 & wait; done"}, StopSignal: unix.SIGKILL, Grace: time.Minute})
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Stop(t.Context())
	pidfile := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(pidfile, []byte(strconv.Itoa(child.PID())), 0o600); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		err := Signal(Target{Pidfile: pidfile}, unix.SIGHUP)
		return err == nil, fmt.Sprint("a pidfile of a running process: ", err)
	})
	began, ok := beginning(child.PID(), time.Now())
	if !ok || time.Since(began) < 0 || time.Since(began) > time.Hour {
		t.Fatalf("the process began at %s", began)
	}
	for written, stale := range map[time.Time]bool{began.Add(-time.Hour): true, began.Add(-clockDoubt / 2): false, began.Add(time.Hour): false} {
		if err := os.Chtimes(pidfile, written, written); err != nil {
			t.Fatal(err)
		}
		err := Signal(Target{Pidfile: pidfile}, unix.SIGHUP)
		_, absent := errors.AsType[*AbsentError](err)
		if absent != stale || (stale && !strings.Contains(err.Error(), "the pidfile is stale: process")) {
			t.Errorf("written %s after the beginning: error %v", written.Sub(began), err)
		}
	}
}

// Where containers do not share their processes a pidfile may hold the agent's
// own number, and a signal would end the agent.
func TestAPidfileThatNamesTheAgent(t *testing.T) {
	pidfile := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(pidfile, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Signal(Target{Pidfile: pidfile}, unix.SIGURG) // one that does no harm
	if _, absent := errors.AsType[*AbsentError](err); err == nil || absent || !strings.Contains(err.Error(), "is the agent itself: the pod needs shareProcessNamespace") {
		t.Errorf("error %v", err)
	}
}

// Only a process that is not there is absent. Everything else is an error that
// time does not fix.
func TestAnErrorIsNotAnAbsence(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := openPID(os.Getppid())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if _, absent := errors.AsType[*AbsentError](err); absent || !errors.Is(err, unix.EMFILE) {
		t.Errorf("error %v", err)
	}
}

// A process that ends between being found and being signalled is absent.
func TestAProcessThatEndsMeanwhile(t *testing.T) {
	c := NewChild(NewParent(), ChildOptions{Args: []string{"sleep", "1000"}, StopSignal: unix.SIGTERM, Grace: time.Minute})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := openPID(c.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(h.fd) }()
	c.Stop(t.Context())
	if _, absent := errors.AsType[*AbsentError](h.signal(unix.SIGTERM)); !absent {
		t.Error("not said to be absent")
	}
}

// A restart that fails half way does not end with the code of the application
// that was stopped: that may be 0.
func TestRestartThatCannotStart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.Symlink("/bin/sleep", program); err != nil {
		t.Fatal(err)
	}
	c := NewChild(NewParent(), ChildOptions{Args: []string{program, "1000"}, StopSignal: unix.SIGTERM, Grace: time.Minute})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context()); err == nil {
		t.Fatal("it was started")
	}
	if code := c.ExitCode(); code != 1 {
		t.Errorf("code %d, want 1", code)
	}
}

// A restart that is overtaken by the end of the agent leaves the application
// its grace and starts no new one.
func TestRestartAtTheEnd(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	c := NewChild(NewParent(), ChildOptions{
		Args:       []string{"sh", "-c", "trap 'sleep 0.2; exit 7' TERM; : > " + ready + "; while :; do sleep 0.02; done"},
		StopSignal: unix.SIGTERM, Grace: time.Minute,
	})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		_, err := os.Stat(ready)
		return err == nil, fmt.Sprint(err)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Restart(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if c.Running() || c.ExitCode() != 7 {
		t.Errorf("running %v, code %d: want the code of its own handler", c.Running(), c.ExitCode())
		c.Kill()
	}
}

// Only pages that cannot have been written to may be given back.
func TestSignalByNameWantsExactlyOne(t *testing.T) {
	dir := t.TempDir()
	name := fmt.Sprint("victim", os.Getpid()) // at most 15 bytes, and another run may go on beside
	raw, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), raw, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Signal(Target{Name: name}, unix.SIGHUP); err == nil || !strings.Contains(err.Error(), "no such process; the pod needs shareProcessNamespace") {
		t.Errorf("error %v", err)
	}
	p := NewParent()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	for range 2 {
		go func() {
			_, _ = p.Run(ctx, Command{Args: []string{filepath.Join(dir, name), "1000"}})
			done <- struct{}{}
		}()
	}
	labtest.Eventually(t, patience, func() (bool, string) {
		found := topmost(name)
		return len(found) == 2, fmt.Sprintf("processes %v, want 2", found)
	})
	if err := Signal(Target{Name: name}, unix.SIGTERM); err == nil || !strings.Contains(err.Error(), "2 processes match") {
		t.Errorf("error %v", err)
	}
	if err := Signal(Target{Name: name, All: true}, unix.SIGTERM); err != nil {
		t.Errorf("all: %v", err)
	}
	<-done
	<-done
	cancel()
}

func FuzzParseStat(f *testing.F) {
	f.Add("12 (a) b (c) S 7 12")
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := parseStat(s); ok && !strings.HasPrefix(s, strconv.Itoa(p.pid)) && !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "0") && !strings.HasPrefix(s, "-") {
			t.Errorf("%q became %+v", s, p)
		}
	})
}

// A pipe in the place of a pidfile is an error that names it, and nothing waits for its writer.
func TestAPidfileThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "app.pid")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Signal(Target{Pidfile: pipe}, unix.SIGHUP) }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "app.pid is a named pipe, not a regular file") {
			t.Errorf("error %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the agent waits for a writer")
	}
}
