package process

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// endTimeout bounds the wait for processes that were sent SIGKILL.
const endTimeout = 2 * time.Minute

// EndSession ends every process of the session that the given one began, and waits
// until they are gone. Nobody of it is left once another process has the same id: the
// system gives no id away while a session is called by it. Where sessions cannot be
// listed it ends that process's group, as long as the process itself runs.
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

// EndMarked ends every other process whose environment has an entry, such as
// "LOCKSTEP_LAB_PART=/directory", and waits until they are gone. It finds none where
// environments cannot be read.
func EndMarked(entry string) error {
	return endAll(func() []int { return marked(entry) })
}

// endAll kills until nobody is left: a process may have begun another one since it
// was found.
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
