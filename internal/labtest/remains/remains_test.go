package remains_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/controlgroup"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// plane is a directory as a control plane has one.
func plane(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sleeper(t *testing.T, env ...string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"600"}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestRemoveTakesProcessesAndDirectory(t *testing.T) {
	dir := plane(t)
	member, stranger := sleeper(t, remains.Mark(dir)), sleeper(t, remains.Mark(dir+"0"))
	if err := remains.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if member.ID().Alive() || !stranger.ID().Alive() {
		t.Errorf("the member runs: %t, want false; the stranger runs: %t, want true", member.ID().Alive(), stranger.ID().Alive())
	}
}

// join puts a process into a control group, in the first hierarchy that takes it.
func join(t *testing.T, group string, pid int) {
	t.Helper()
	files, err := filepath.Glob("/sys/fs/cgroup/*/" + group + "/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "/sys/fs/cgroup/"+group+"/cgroup.procs") {
		if os.WriteFile(file, []byte(strconv.Itoa(pid)), 0) == nil {
			return
		}
	}
	t.Fatal("no control group takes a process")
}

// TestFailureKeepsTheDirectory: whoever tries again finds what to do by the directory.
func TestFailureKeepsTheDirectory(t *testing.T) {
	labtest.In(t, labtest.TierAll)
	if err := controlgroup.Try(); err != nil {
		t.Fatalf("like a real node, this test needs control groups that it can write to: %v", err)
	}
	dir := plane(t)
	group := remains.Group(dir)
	if err := controlgroup.Make(group); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controlgroup.Remove(group); err != nil {
			t.Error(err)
		}
	})
	busy := sleeper(t)
	join(t, group, busy.ID().PID)
	if err := remains.Remove(dir); err == nil || !strings.Contains(err.Error(), group) {
		t.Errorf("error is %v, want the group that is in use", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory is gone although there is more to remove: %v", err)
	}
	if err := busy.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := remains.Remove(dir); err != nil {
		t.Errorf("the second attempt: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}
