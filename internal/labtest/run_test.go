package labtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// record writes the record of a control plane into a cache of this test's own.
func record(t *testing.T, name string, run Run) string {
	t.Helper()
	parent, err := runsDir()
	if err != nil {
		t.Fatal(err)
	}
	run.Dir = filepath.Join(parent, name)
	if err := os.MkdirAll(run.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := run.save(); err != nil {
		t.Fatal(err)
	}
	return run.Dir
}

// sleeper is a process in a group of its own that nothing ends by itself.
func sleeper(t *testing.T) process.Identity {
	t.Helper()
	p, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() }) //nolint:errcheck // It may have been killed by the test.
	return p.ID()
}

func TestSweepRemovesOnlyWhatIsDead(t *testing.T) {
	t.Setenv(program.CacheEnv, t.TempDir())
	dead := process.Identity{PID: os.Getpid(), Birth: "an earlier process with this id"}
	left, stranger := sleeper(t), sleeper(t)
	recycled := process.Identity{PID: stranger.PID, Birth: "an earlier process with this id"}

	orphaned := record(t, "orphaned", Run{Owner: dead, Processes: []Member{{Name: "etcd", Identity: left}}})
	reused := record(t, "reused", Run{Owner: dead, Processes: []Member{{Name: "etcd", Identity: recycled}}})
	owned := record(t, "owned", Run{Owner: process.Self()})
	up := record(t, "up", Run{Owner: dead, Detached: true, Processes: []Member{{Name: "etcd", Identity: stranger}}})

	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{orphaned: false, reused: false, owned: true, up: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s exists after the sweep: %t, want %t", filepath.Base(dir), err == nil, want)
		}
	}
	if left.Alive() {
		t.Error("a process of a dead run is still alive")
	}
	if !stranger.Alive() {
		t.Error("a process that only has the id of a dead one was ended")
	}
}

func TestSweepLeavesAFolderThatIsJustBeingMade(t *testing.T) {
	t.Setenv(program.CacheEnv, t.TempDir())
	parent, err := runsDir()
	if err != nil {
		t.Fatal(err)
	}
	young, old := filepath.Join(parent, "young"), filepath.Join(parent, "old")
	for _, dir := range []string{young, old} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * unwritten)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a folder without a record yet is gone: %v", err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old folder without a record is still there")
	}
}

func TestSatisfies(t *testing.T) {
	run := &Run{Kubernetes: "1.36.3", With: []Component{KWOK}}
	cases := map[string]struct {
		options Options
		want    bool
	}{
		"the same":          {Options{Kubernetes: "1.36", With: []Component{KWOK}}, true},
		"less":              {Options{}, true},
		"more":              {Options{With: []Component{KWOK, ArgoRollouts}}, false},
		"another release":   {Options{Kubernetes: "1.34"}, false},
		"a prefix of a one": {Options{Kubernetes: "1.3"}, false},
	}
	for name, c := range cases {
		if got := run.Satisfies(c.options); got != c.want {
			t.Errorf("%s: satisfied is %t, want %t", name, got, c.want)
		}
	}
}

func TestOptionsNameTheirPrograms(t *testing.T) {
	for _, options := range []Options{{}, {Kubernetes: "1.34"}, {With: Components()}} {
		for _, name := range options.Programs() {
			if _, err := program.Find(name); err != nil {
				t.Errorf("options %+v: %v", options, err)
			}
		}
	}
}
