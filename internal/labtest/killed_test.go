package labtest_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

func TestKilledTestLeavesNothingRunning(t *testing.T) {
	runs := ownRuns(t)
	victim := labtest.StartCommand(t, labtest.Command{Path: os.Args[0], Env: []string{victimEnv + "=1"}})
	labtest.Eventually(t, time.Minute, func() (bool, string) {
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
	for _, p := range record.Processes {
		labtest.Eventually(t, 5*time.Second, func() (bool, string) {
			return !p.Alive(), p.Name + " still runs after its starter was killed"
		})
	}

	// The next start clears away the folder.
	labtest.Private(t, labtest.Options{})
	entries, err := os.ReadDir(runs)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(record.Dir, entry.Name()) {
			t.Errorf("%s is still there after the next start", record.Dir)
		}
	}
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
