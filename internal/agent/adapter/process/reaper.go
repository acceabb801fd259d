// Package process knows how to be a parent process: it runs commands and one long-lived
// child, reaps orphans as PID 1 has to, and signals processes without hitting another one
// that reuses the PID.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Parent starts processes and reaps the orphans that it inherits. Reaping any dead process
// with wait4(-1) would steal the exit status of its own commands, so it peeks first
// (WNOWAIT) and leaves its own processes to the goroutines that wait for them.
type Parent struct {
	mu   sync.Mutex
	own  map[int]bool
	gone *sync.Cond
}

// NewParent returns a parent without children.
func NewParent() *Parent {
	p := &Parent{own: map[int]bool{}}
	p.gone = sync.NewCond(&p.mu)
	return p
}

// start holds the lock until the process is registered: a process that dies at once must not
// look like an orphan.
func (p *Parent) start(cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	p.own[cmd.Process.Pid] = true
	return nil
}

// wait collects a process that start began.
func (p *Parent) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.own, cmd.Process.Pid)
	p.gone.Broadcast()
	return err
}

// ReapOrphans reaps processes whose parents died, until ctx ends. PID 1 inherits them; any
// other process first has to become a subreaper.
func (p *Parent) ReapOrphans(ctx context.Context) error {
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become the parent of orphans: %w", err)
		}
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		p.reapAll()
		select {
		case <-ctx.Done():
			return nil
		case <-died:
		}
	}
}

func (p *Parent) reapAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		pid, err := peek()
		if err != nil || pid == 0 {
			return
		}
		if p.own[pid] {
			// Another goroutine is about to reap it; the orphans behind it come next.
			p.gone.Wait()
			continue
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// peek returns the PID of a dead child without reaping it; 0 means there is none.
func peek() (int, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return siginfoPID(&info), err
		}
	}
}

// siginfoPID reads si_pid, the first field after the three that every signal
// has; the library leaves the union behind them without names.
func siginfoPID(info *unix.Siginfo) int {
	const header = 3*unsafe.Sizeof(int32(0)) + unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(int32(0))
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), header))) //nolint:gosec // within the structure: its size is 128 bytes
}
