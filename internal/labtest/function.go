package labtest

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
)

// Function is a command to run in the test process: its main function without the parts that
// belong to a process.
type Function struct {
	Name string
	Args []string
	// Run returns the exit code. It ends when the context ends.
	Run func(ctx context.Context, stdout, stderr io.Writer) int
}

// function is a started Function.
type function struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	code int
}

// StartFunction starts a command in the test process. When the test ends, it cancels the
// command and waits for it. Its output is shown when the test fails. The race detector
// covers it, and it starts at once. A test that kills or freezes a program needs
// [StartCommand].
func StartFunction(t testing.TB, f Function) *Running {
	t.Helper()
	// Not the test's context, which ends before the cleanup: the cleanup ends the command.
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	started := &function{name: f.Name, stop: stop, done: make(chan struct{})}
	r := &Running{running: started}
	go func() {
		defer close(started.done)
		started.code = f.Run(ctx, &r.stdout, &r.stderr)
	}()
	t.Cleanup(func() {
		stop()
		select {
		case <-started.done:
		case <-time.After(exitTimeout):
			t.Errorf("%s still runs %s after it was asked to end", f.Name, exitTimeout)
		}
		r.showIfFailed(t, f.Args)
	})
	return r
}

// Name implements running.
func (f *function) Name() string { return f.name }

// Done implements running.
func (f *function) Done() <-chan struct{} { return f.done }

// ExitCode implements running.
func (f *function) ExitCode() int {
	<-f.done
	return f.code
}

// Signal implements running.
func (f *function) Signal(signal syscall.Signal) error {
	if signal != syscall.SIGTERM && signal != syscall.SIGINT {
		return fmt.Errorf("%s runs in the test process, which can't send it %s: start it as a process", f.name, signal)
	}
	f.stop()
	return nil
}
