package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ChildOptions configure how the application runs.
type ChildOptions struct {
	Args []string
	// StopSignal requests its end; Grace is how long it has before its whole process group is
	// killed.
	StopSignal unix.Signal
	Grace      time.Duration
	// AnySignal sends a notification's signal even to an application that doesn't handle it,
	// which most signals end.
	AnySignal bool
}

// Validate reports every mistake in the options.
func (o ChildOptions) Validate() error {
	var mistakes []error
	if len(o.Args) == 0 {
		mistakes = append(mistakes, errors.New("the command after -- is missing"))
	}
	if o.StopSignal <= 0 {
		mistakes = append(mistakes, errors.New("the stop signal is missing"))
	}
	if o.Grace <= 0 {
		mistakes = append(mistakes, fmt.Errorf("grace %s: want a positive time", o.Grace))
	}
	return errors.Join(mistakes...)
}

// Child is the application in subprocess mode.
type Child struct {
	parent *Parent
	opts   ChildOptions

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	code int
}

// NewChild returns a child that is not started yet.
func NewChild(parent *Parent, opts ChildOptions) *Child {
	return &Child{parent: parent, opts: opts}
}

// Start runs the application with the agent's own streams. It fails while the application
// runs, so there are never two.
func (c *Child) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return errors.New("start the application: it is already running")
	}
	cmd := exec.Command(c.opts.Args[0], c.opts.Args[1:]...) //nolint:gosec,noctx // the user's own command; its end is Stop
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = childAttributes()
	if err := c.parent.start(cmd); err != nil {
		c.code = 1 // not the code of the previous run
		return fmt.Errorf("start the application: %w", err)
	}
	done := make(chan struct{})
	c.cmd, c.done = cmd, done
	go func() {
		err := c.parent.wait(cmd)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.code = exitCode(cmd, err)
		close(done)
	}()
	return nil
}

// childAttributes puts the application into its own process group; at a terminal, that group
// becomes the foreground group.
func childAttributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		attr.Foreground, attr.Ctty = true, int(os.Stdin.Fd())
	}
	return attr
}

// exitCode is the child's own, or 128+n when a signal ended it.
func exitCode(cmd *exec.Cmd, err error) int {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled():
		return 128 + int(status.Signal())
	case ok:
		return status.ExitStatus()
	case err != nil:
		return 1
	}
	return 0
}

func (c *Child) running() bool {
	if c.done == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Running reports whether the application runs now.
func (c *Child) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running()
}

// Done is closed when the current application has ended. Before the first start it is nil
// and blocks forever.
func (c *Child) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// ExitCode is how the last application ended.
func (c *Child) ExitCode() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code
}

// PID is the application's process ID, 0 when it does not run.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return 0
	}
	return c.cmd.Process.Pid
}

// Notify sends the application a signal, unless that would end it and AnySignal is false.
func (c *Child) Notify(sig unix.Signal) error {
	if pid := c.PID(); pid != 0 && !c.opts.AnySignal {
		if err := survives(pid, sig); err != nil {
			return fmt.Errorf("signal %s to the application: %w", unix.SignalName(sig), err)
		}
	}
	return c.Signal(sig)
}

// Signal passes a signal on to the application.
func (c *Child) Signal(sig unix.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return &AbsentError{fmt.Errorf("signal %s to the application: it isn't running", unix.SignalName(sig))}
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s to the application: %w", unix.SignalName(sig), err)
	}
	return nil
}

// Stop requests the application's end, waits for the grace period or until hurry ends, and
// then kills its process group. It returns when the application is gone.
func (c *Child) Stop(hurry context.Context) {
	pid, done := c.PID(), c.Done()
	if pid == 0 {
		return
	}
	_ = c.Signal(c.opts.StopSignal) // it may have ended in between
	timer := time.NewTimer(c.opts.Grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-hurry.Done():
	}
	// Kill the rest of the group, even when the child itself is gone.
	_ = unix.Kill(-pid, unix.SIGKILL)
	<-done
}

// Kill kills the application and its process group at once.
func (c *Child) Kill() {
	if pid := c.PID(); pid != 0 {
		_ = unix.Kill(-pid, unix.SIGKILL) // it may have ended in between
	}
}

// Restart stops the application and starts it again. If ctx ends, the application keeps its
// grace period and isn't started again.
func (c *Child) Restart(ctx context.Context) error {
	c.Stop(context.WithoutCancel(ctx))
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("restart the application: %w", err)
	}
	return c.Start()
}
