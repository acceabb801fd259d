package process

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// endTimeout bounds the wait for processes that were sent SIGKILL or SIGSTOP.
const endTimeout = 2 * time.Minute

// EndSession ends every process of the session that the given one started, and waits until
// they are gone. The system doesn't reuse an ID while a session has it, so the session is
// empty once another process has the ID. Where sessions can't be listed, it ends that
// process's group, as long as the process itself runs.
func EndSession(leader Identity) error {
	if leader.Alive() {
		// A negative number is a group to kill(2).
		if err := kill(-leader.PID); err != nil {
			return err
		}
	}
	return endAll(func() []int {
		if leader.replaced() {
			return nil
		}
		return sessionOf(leader.PID)
	})
}

// EndMarked ends every other process whose environment contains an entry, such as
// "LOCKSTEP_LAB_PART=/directory", and waits until they are gone. It finds none where
// environments can't be read.
func EndMarked(entry string) error {
	return endAll(func() []int { return marked(entry) })
}

// endAll kills until no process is left: a process may have started another one since it was
// found.
func endAll(find func() []int) error {
	deadline := time.Now().Add(endTimeout)
	for {
		found := find()
		if len(found) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %d are still there %s after SIGKILL", found, endTimeout)
		}
		for _, pid := range found {
			if err := kill(pid); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func kill(target int) error {
	if err := syscall.Kill(target, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("kill process %d: %w", target, os.NewSyscallError("kill", err))
	}
	return nil
}
