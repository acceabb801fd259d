package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// TestKilledNodeLeavesNoTrace kills the process that started a node, which then
// can clean nothing up itself, and compares the host with what it was before.
func TestKilledNodeLeavesNoTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("-short asks for the tests without a real node")
	}
	before := host(t)
	starter := labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./lab"), Args: []string{"exec", "--node", "real", "--", "sleep", "600"},
	})
	var run *labtest.Run
	labtest.Eventually(t, 5*time.Minute, func() (bool, string) {
		run = runOf(t, starter.PID())
		return run != nil && slices.Contains(run.With, labtest.Node), "the node is not up: " + starter.Stderr()
	})
	if groups := groupsOf(t, run); len(groups) == 0 {
		t.Error("a node that runs has control groups; this test looks for them in the wrong place")
	}
	if diff := cmp.Diff(before, host(t)); diff != "" {
		t.Errorf("the host with a node differs from before (-before +with):\n%s", diff)
	}

	if err := syscall.Kill(starter.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-starter.Done()
	for _, p := range run.Processes {
		labtest.Eventually(t, time.Minute, func() (bool, string) {
			return !p.Alive(), p.Name + " still runs after its starter was killed"
		})
	}
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		left := groupsOf(t, run)
		return len(left) == 0, fmt.Sprintf("control groups are left: %q", left)
	})
	if diff := cmp.Diff(before, host(t)); diff != "" {
		t.Errorf("the host differs from before (-before +after):\n%s", diff)
	}
}

func runOf(t *testing.T, pid int) *labtest.Run {
	t.Helper()
	runs, err := labtest.Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Owner.PID == pid {
			return r
		}
	}
	return nil
}

func groupsOf(t *testing.T, run *labtest.Run) []string {
	t.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + run.Group)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// host is what a node could change on its host and must not: kernel settings,
// network devices, mounts, and the folders that its programs use elsewhere.
func host(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		state[name] = strings.TrimSpace(string(value))
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	state["mounts"] = string(mounts)
	for _, dir := range []string{"/sys/class/net", "/run/netns", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			state[dir] = "absent"
			continue
		}
		names := []string{}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		state[dir] = strings.Join(names, " ")
	}
	return state
}
