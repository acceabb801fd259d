package apps_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/agentkit"
)

// An agent that is killed at any point, at the nth system call of each kind
// that changes the disk, leaves a whole set behind; the next one converges, tells
// the application and cleans up. The new set is good, or is refused by the
// application and rolled back.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "strace")
	for name, calls := range map[string][]string{
		"good":    {"mkdirat", "linkat", "symlinkat", "renameat", "renameat2", "unlinkat", "fchmod"},
		"refused": {"renameat", "renameat2"},
	} {
		for _, layout := range []string{"links", "exchange"} {
			t.Run(name+" "+layout, func(t *testing.T) {
				t.Parallel()
				killed := 0
				for _, call := range calls {
					for n := 1; n < 60; n++ {
						if !(killing{layout: layout, refused: name == "refused"}).at(t, call, n) {
							break
						}
						killed++
					}
				}
				t.Logf("killed at %d points", killed)
				if killed < 2*len(calls) {
					t.Errorf("only %d points were met", killed)
				}
			})
		}
	}
}

// killing is a change from one set to another by an agent that does not survive
// it.
type killing struct {
	layout  string
	refused bool // the application does not take the new set
}

// at kills the agent at the nth call and checks what is left. It says whether
// there was an nth call.
func (k killing) at(t *testing.T, call string, n int) bool {
	t.Helper()
	dir := t.TempDir()
	source, root, told := filepath.Join(dir, "source"), filepath.Join(dir, "volume", "config"), filepath.Join(dir, "told")
	takes, patient := "true", "3m"
	if k.refused {
		takes, patient = "grep -q old "+told, "500ms"
	}
	args := []string{
		"--directory=" + source, "--root=" + root, "--layout=" + k.layout, "--keep-old=0", "--quiet=0",
		"--notify=exec:sh -c 'cat " + root + "/a " + root + "/b > " + told + "'",
		"--confirm=exec:sh -c '" + takes + "'", "--confirm-timeout=" + patient, "--roll-back", "--max-failures=1", "--retry=50ms",
	}
	where := fmt.Sprintf("killed at %s %d", call, n)
	agentkit.Write(t, filepath.Join(source, "a"), "old")
	agentkit.Write(t, filepath.Join(source, "b"), "old")
	if _, stderr, code := labtest.RunCommand(t, labtest.Command{Path: agentkit.Program(t), Args: append(args, "--once", "--confirm-timeout=3m")}); code != 0 {
		t.Fatal(stderr)
	}
	agentkit.Write(t, filepath.Join(source, "a"), "new")
	agentkit.Write(t, filepath.Join(source, "b"), "new")
	agentkit.Write(t, filepath.Join(source, "sub", "c"), "new")
	if k.overwrites() {
		args = append(args, "--overwrite")
		agentkit.Write(t, filepath.Join(source, "taken"), "new")
		agentkit.Write(t, filepath.Join(root, "taken"), "foreign")
	}
	// -D: the program that is started is the agent, and the tracer is beside it.
	strace := []string{"-D", "-f", "-qq", "-o", "/dev/null", "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), agentkit.Program(t)}
	victim := labtest.StartCommand(t, labtest.Command{Path: "strace", Args: append(strace, args...)})
	met := k.survives(t, victim, root)
	a, b := agentkit.Read(root+"/a"), agentkit.Read(root+"/b")
	if a != b || (a != "old" && a != "new") {
		t.Errorf("%s: a is %q, b is %q", where, a, b)
	}
	if taken := agentkit.Read(root + "/taken"); k.overwrites() && taken != "foreign" && taken != "new" {
		t.Errorf("%s: a file of somebody else is %q", where, taken)
	}
	next := labtest.StartCommand(t, labtest.Command{Path: agentkit.Program(t), Args: args})
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		return k.settled(root), fmt.Sprintf("%s: %+v\n%s", where, k.status(root), next.Stderr())
	})
	next.Stop(t)
	k.wantEnd(t, where, root, told)
	return met
}

// overwrites says that the new set takes the place of somebody else's file.
func (k killing) overwrites() bool { return k.layout == "links" && !k.refused }

// survives waits until the agent is killed or has done everything; it says
// whether it was killed.
func (k killing) survives(t *testing.T, victim *labtest.Running, root string) bool {
	t.Helper()
	killed := false
	labtest.Eventually(t, agentkit.Patience, func() (bool, string) {
		select {
		case <-victim.Done():
			killed = true
			return true, ""
		default:
			return k.settled(root), victim.Stderr()
		}
	})
	if !killed {
		victim.Stop(t)
	}
	return killed
}

func (k killing) status(root string) (s podsync.Status) {
	raw, err := os.ReadFile(filepath.Join(volume.StateDir(root, volume.Layout(k.layout)), podsync.StatusFile))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return podsync.Status{}
	}
	return s
}

// settled says that the new set is confirmed, or barred and the old one is.
func (k killing) settled(root string) bool {
	s := k.status(root)
	if k.refused {
		return s.Reason == podsync.RolledBack && s.Confirmed == s.Published
	}
	return s.Reason == podsync.InStep && s.Observed == s.Published && s.Confirmed == s.Published && s.Previous != ""
}

// wantEnd compares what is left in the end: one set, of which the application
// was told last, and nothing beside it.
func (k killing) wantEnd(t *testing.T, where, root, told string) {
	t.Helper()
	want, visible := "new", "map[a:new b:new sub/c:new]"
	if k.overwrites() {
		visible = "map[a:new b:new sub/c:new taken:new]"
	}
	if k.refused {
		want, visible = "old", "map[a:old b:old]"
	}
	if got := fmt.Sprint(agentkit.Files(root)); got != visible {
		t.Errorf("%s: files %s, want %s", where, got, visible)
	}
	if got := agentkit.Read(told); got != want+want {
		t.Errorf("%s: the application was told of %q, want the %s set", where, got, want)
	}
	for _, pattern := range []string{"*tmp*", "*/*tmp*", "*/*/*tmp*", "*/probe-*", "*/*/objects/new-*"} {
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(root), pattern)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind %v (%v)", where, left, err)
		}
	}
}
