package labtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestSweepLeavesADirectoryThatIsJustBeingMade(t *testing.T) {
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
		t.Errorf("a directory without a record yet is gone: %v", err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old directory without a record is still there")
	}
}

func TestSweepGoesOnBesideWhatItCannotRead(t *testing.T) {
	t.Setenv(program.CacheEnv, t.TempDir())
	dead := process.Identity{PID: os.Getpid(), Birth: "an earlier process with this id"}
	orphaned := record(t, "z-orphaned", Run{Owner: dead})
	owned := record(t, "z-owned", Run{Owner: process.Self()})
	torn := record(t, "a-torn", Run{Owner: process.Self()})
	if err := os.WriteFile(filepath.Join(torn, recordFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(torn), ".DS_Store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweep(); err != nil {
		t.Error(err)
	}
	runs, err := Runs()
	if err != nil || len(runs) != 1 || runs[0].Dir != owned {
		t.Errorf("runs are %v, error %v, want only %s", runs, err, owned)
	}
	if _, err := os.Stat(orphaned); err == nil {
		t.Error("a dead control plane is still there")
	}
}

func TestBeginRefusesTheNameOfALivingProcess(t *testing.T) {
	t.Setenv(program.CacheEnv, t.TempDir())
	dir := record(t, "one", Run{Owner: process.Self()})
	c := &Cluster{run: &Run{Dir: dir}, processes: map[string]*process.Process{}}
	sleep := process.Spec{Path: "/bin/sleep", Args: []string{"600"}}
	if err := c.begin("etcd", "1", sleep); err != nil {
		t.Fatal(err)
	}
	first := c.processes["etcd"]
	if err := c.begin("etcd", "1", sleep); err == nil || !strings.Contains(err.Error(), "etcd runs already") {
		t.Errorf("error is %v, want a refusal", err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.begin("etcd", "1", sleep); err != nil {
		t.Errorf("a name whose process has ended is refused: %v", err)
	}
	if err := c.processes["etcd"].Kill(); err != nil {
		t.Fatal(err)
	}
}

// TestFailureOfANodeShowsAllItsLogs: what is wrong with a node is in the log of the
// programs that it runs, not in its own.
func TestFailureOfANodeShowsAllItsLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"node", "containerd", "kubelet", "etcd"} {
		if err := os.WriteFile(filepath.Join(dir, name+".log"), []byte("words of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cluster{run: &Run{Dir: dir}}
	for name, want := range map[string][]string{
		nodeProcess: {"words of node", "words of containerd", "words of kubelet"},
		"etcd":      {"words of etcd"},
	} {
		got := c.logTails(name)
		if n := strings.Count(got, "words of "); n != len(want) {
			t.Errorf("%s: %d logs are shown, want %d", name, n, len(want))
		}
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("%s: %q is not in %q", name, words, got)
			}
		}
	}
}

func TestCheckRefusesWhatDoesNotGoTogether(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    string
	}{
		"nothing":                  {Options{}, ""},
		"everything for fakes":     {Options{With: []Component{KWOK, ArgoRollouts}}, ""},
		"a node twice":             {Options{With: []Component{Node, Node}}, ""},
		"a fake node, then a real": {Options{With: []Component{KWOK, Node}}, "kwok would take"},
		"a real node, then a fake": {Options{With: []Component{Node, KWOK}}, "kwok would take"},
		"a node of 1.36 with 1.34": {Options{Kubernetes: "1.34", With: []Component{Node}}, "kubelet of Kubernetes 1.36"},
	}
	for name, c := range cases {
		err := c.options.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
	}
}

func TestPrivatePlanesAreOfTheReleaseOfTheRun(t *testing.T) {
	t.Setenv(program.CacheEnv, t.TempDir())
	for version, want := range map[string]string{"1.34.4": "1.34", "1.36.3": "1.36"} {
		t.Setenv(Env, record(t, version, Run{Owner: process.Self(), Kubernetes: version}))
		if got := releaseOfRun(); got != want {
			t.Errorf("the release of a run on %s is %q, want %s", version, got, want)
		}
	}
	t.Setenv(Env, "")
	if got := releaseOfRun(); got != "" {
		t.Errorf("the release without a run is %q, want the default", got)
	}
}

func TestComponentsAreNamedOnce(t *testing.T) {
	got := Options{With: []Component{Node, ArgoRollouts, Node}}.components()
	if diff := cmp.Diff([]Component{Node, ArgoRollouts}, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
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
