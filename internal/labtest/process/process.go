// Package process runs the lab's programs so that none of them outlives the
// process that started it, however that one ends.
//
// Every process has a session of its own and is ended together with all of that
// session: a program that gives its children process groups of their own still
// takes them with it. On Linux the kernel ends the process as well when its starter
// dies, even by SIGKILL. Elsewhere, and for detached processes, an [Identity] is
// written down so that a later run can find what was left behind without ever ending
// a stranger that happens to have the same process id.
package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Path string   // the program
	Args []string // its arguments, without the program's name
	Env  []string // the whole environment; nil means that of this process
	Dir  string   // the working directory; empty means that of this process

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Apart gives the process mount, network and process namespaces of its own;
	// when it ends the kernel ends everything in them. Linux only.
	Apart bool
	// Detached processes outlive their starter; somebody must end them by
	// their Identity.
	Detached bool
	// Foreground keeps the process in its starter's process group, so that it
	// can read the terminal and hears Ctrl-C. Kill then ends it alone.
	Foreground bool
}

// Process is a started program.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	id   Identity
	done chan struct{}
	err  error
}

// Start runs a program and returns once it has been started.
//
// The surprise it deals with: Linux sends the parent-death signal when the
// *thread* that forked the child ends, not when its process does, and the Go
// runtime moves goroutines between threads and may end one at any time. So one
// goroutine, locked to its thread, both starts the program and waits for it:
// the thread lives exactly as long as the child.
func Start(spec Spec) (*Process, error) {
	p := &Process{spec: spec, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with this goroutine.
		defer close(p.done)
		p.cmd = command(spec)
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		p.id = Identify(p.cmd.Process.Pid) // Before Wait, which gives the id away.
		started <- nil
		p.err = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name(), err)
	}
	return p, nil
}

func command(spec Spec) *exec.Cmd {
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:gosec,noctx // Running given programs is this package's purpose; the caller decides when they end.
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Stdin, spec.Stdout, spec.Stderr
	cmd.WaitDelay = 5 * time.Second // for grandchildren that keep the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !spec.Foreground}
	if !spec.Detached {
		dieWithStarter(cmd.SysProcAttr)
	}
	if spec.Apart {
		setApart(cmd.SysProcAttr)
	}
	return cmd
}

// Name is the base name of the program.
func (p *Process) Name() string { return filepath.Base(p.spec.Path) }

// ID identifies the process beyond the life of its process id.
func (p *Process) ID() Identity { return p.id }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the process ended; it waits for that.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// ExitCode waits for the end of the process and returns its exit code, as a
// shell would: 128 and the signal's number for one ended by a signal.
func (p *Process) ExitCode() int {
	<-p.done
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Signal sends a signal to the process alone, as Kubernetes does to the first
// process of a container. It is no error when the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(p.id.PID, sig); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("send %s to %s (process %d): %w", sig, p.Name(), p.id.PID, os.NewSyscallError("kill", err))
	}
	return nil
}

// Freeze stops the process from running, and returns when it stands: the signal
// alone is on its way while the process may still answer a request.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for !p.id.stands() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (process %d) still runs 10s after SIGSTOP", p.Name(), p.id.PID)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Kill ends the process and, unless it is in the foreground, every process of
// its session with SIGKILL, and waits until they have ended. What a process that
// has ended left behind in its session is ended too.
func (p *Process) Kill() error {
	if p.spec.Foreground {
		if err := p.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	} else if err := EndSession(p.id); err != nil {
		return fmt.Errorf("end %s: %w", p.Name(), err)
	}
	<-p.done
	return nil
}
