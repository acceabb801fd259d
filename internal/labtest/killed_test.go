package labtest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

func TestKilledTestLeavesNothing(t *testing.T) {
	ownRuns(t)
	victim := labtest.StartCommand(t, labtest.Command{Path: os.Args[0], Env: []string{victimEnv + "=1"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		return strings.HasSuffix(victim.Stdout(), "\n"), "the control plane is not up: " + victim.Stderr()
	})
	record := oneRun(t)
	var names []string
	for _, p := range record.Processes {
		names = append(names, p.Name)
		if !p.Alive() {
			t.Errorf("%s does not run before the kill", p.Name)
		}
	}
	if diff := cmp.Diff([]string{"etcd", "kube-apiserver", "kube-controller-manager"}, names); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}

	// SIGKILL to the one process, not to its group: its children must go by
	// themselves.
	if err := syscall.Kill(victim.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-victim.Done()
	awaitNothing(t, record)
}

// awaitNothing waits until nothing of a control plane is left, neither processes nor
// the directory with its keys.
func awaitNothing(t *testing.T, record *labtest.Run) {
	t.Helper()
	labtest.Eventually(t, patience, func() (bool, string) {
		for _, p := range record.Processes {
			if p.Alive() {
				return false, p.Name + " still runs after its starter was killed"
			}
		}
		_, err := os.Stat(record.Dir)
		return errors.Is(err, os.ErrNotExist), record.Dir + " is still there after its owner was killed"
	})
}

// TestKilledStartOfADetachedPlaneLeavesNothing: what shall outlive its starter has no
// parent-death signal, but until it is up it shall not outlive it.
func TestKilledStartOfADetachedPlaneLeavesNothing(t *testing.T) {
	ownRuns(t)
	for range 5 {
		record, up := killStart(t)
		if !up {
			awaitNothing(t, record)
			return
		}
		// The kill came late, and what is up may stay.
		if err := oneRun(t).End(); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the control plane was up before each kill; this test shows nothing")
}

// killStart kills a process that starts a detached control plane, as soon as a part
// of that runs, and tells whether it was up by then.
func killStart(t *testing.T) (record *labtest.Run, up bool) {
	t.Helper()
	victim := labtest.StartCommand(t, labtest.Command{Path: os.Args[0], Env: []string{victimEnv + "=detached"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		runs, err := labtest.Runs()
		if err == nil && len(runs) == 1 && len(runs[0].Processes) > 0 {
			record = runs[0]
		}
		return record != nil, fmt.Sprintf("no process of the control plane is recorded (error %v): %s", err, victim.Stderr())
	})
	victim.Signal(t, syscall.SIGKILL)
	<-victim.Done()
	return record, victim.Stdout() != ""
}

// TestKilledTestTakesGrandchildrenWithIt: the parent-death signal reaches the command
// of the test, but not what that command has started in a process group of its own.
func TestKilledTestTakesGrandchildrenWithIt(t *testing.T) {
	if os.Getenv(grandchildEnv) != "" {
		beTestWithAGrandchild(t)
	}
	victim := labtest.StartCommand(t, labtest.Command{Path: os.Args[0], Args: []string{"-test.run=^" + t.Name() + "$"}, Env: []string{grandchildEnv + "=1"}})
	var pid int
	labtest.Eventually(t, patience, func() (bool, string) {
		_, err := fmt.Sscanf(victim.Stdout(), "grandchild %d\n", &pid)
		return err == nil, "no grandchild yet: " + victim.Stdout() + victim.Stderr()
	})
	grandchild := process.Identify(pid)
	if !grandchild.Alive() {
		t.Fatal("the grandchild does not run before the kill")
	}
	victim.Signal(t, syscall.SIGKILL)
	<-victim.Done()
	labtest.Eventually(t, patience, func() (bool, string) {
		return !grandchild.Alive(), fmt.Sprintf("process %d, the grandchild, still runs after the test was killed", pid)
	})
}

// beTestWithAGrandchild makes this process the test that is killed.
func beTestWithAGrandchild(t *testing.T) {
	t.Helper()
	// The child prints its grandchild's id and drops its environment, as daemons do that
	// show their state in it.
	r := labtest.StartCommand(t, labtest.Command{Path: "/bin/bash", Args: []string{"-c", "set -m; env -i sleep 600 & echo $!; wait"}})
	labtest.Eventually(t, patience, func() (bool, string) {
		return r.Stdout() != "", "the shell hasn't printed the grandchild's process id: " + r.Stderr()
	})
	fmt.Print("grandchild ", r.Stdout())
	select {}
}

func oneRun(t *testing.T) *labtest.Run {
	t.Helper()
	runs, err := labtest.Runs()
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Fatalf("%d control planes run, want 1", len(runs))
	}
	return runs[0]
}
