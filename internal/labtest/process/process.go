// Package process runs the lab's programs and makes sure that none of them outlives the
// process that started it, however that one ends.
//
// Every process has its own session and is ended together with it, so its children end even
// when they have their own process groups. On Linux the kernel also ends the process when
// its starter dies, even by SIGKILL. Elsewhere, and for detached processes, an [Identity] is
// recorded. A later run uses it to find leftovers without ever ending an unrelated process
// that has the same process ID.
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

// Spec describes a program to run.
type Spec struct {
	Path string   // the program
	Args []string // its arguments, without the program's name
	Env  []string // the whole environment; nil means that of this process
	Dir  string   // the working directory; empty means that of this process

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Apart runs the process in its own mount, network and process namespaces; when it ends, the
	// kernel ends everything in them. Linux only.
	Apart bool
	// Detached processes outlive their starter and must be ended by their Identity.
	Detached bool
	// Foreground keeps the process in its starter's process group, so it can read the terminal
	// and receives Ctrl-C. Kill then ends it alone.
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
// Linux sends the parent-death signal when the *thread* that forked the child ends, not when
// its process does, and the Go runtime moves goroutines between threads and may end one at
// any time. So one goroutine, locked to its thread, both starts the program and waits for
// it: the thread lives exactly as long as the child.
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
		p.id = Identify(p.cmd.Process.Pid) // Before Wait, which releases the ID.
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

// ID identifies the process even after its process ID is reused.
func (p *Process) ID() Identity { return p.id }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process and returns how it ended.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// ExitCode waits for the end of the process and returns its exit code, as a shell would: 128
// plus the signal's number for one ended by a signal.
func (p *Process) ExitCode() int {
	<-p.done
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Signal sends a signal to the process alone, as Kubernetes does to the first process of a
// container. It is not an error when the process has ended.
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

// Freeze suspends the process, and returns when it is suspended: right after the signal was
// sent, the process may still answer a request.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	deadline := time.Now().Add(endTimeout)
	for !p.id.stands() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s (process %d) still runs %s after SIGSTOP", p.Name(), p.id.PID, endTimeout)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Kill ends the process and, unless it is in the foreground, every process of its session
// with SIGKILL, and waits until they have ended. It ends the rest of the session even when
// the process itself has ended.
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
