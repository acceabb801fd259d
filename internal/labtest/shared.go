package labtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// StartReason begins the message of every test that fails because the shared control plane
// is missing.
const StartReason = "shared control plane: "

// Env names the environment variable that holds the directory of the control plane
// to share. The lab's exec command sets it for the command that it runs.
const Env = "LOCKSTEP_LAB"

// sharedOnce starts at most one shared control plane per test process.
//
//nolint:gochecknoglobals // What is shared by all tests of a process has to live somewhere in the process.
var sharedOnce = sync.OnceValues(startShared)

// sharedGrows lets one test at a time add a component to the shared control plane.
//
//nolint:gochecknoglobals // All tests of a process share the control plane, so its lock belongs to the process.
var sharedGrows sync.Mutex

// Shared returns the control plane of this test run, with the needed components: the one
// that the lab's exec command started for it, or one that this test process starts on first
// use and that ends with the process. Tests must use their own namespaces. A run whose tier
// doesn't build the components skips the test.
func Shared(t testing.TB, needs ...Component) *Cluster {
	t.Helper()
	inTierOf(t, Options{With: needs}.Programs())
	cluster, err := sharedOnce()
	if err != nil {
		t.Fatalf("%s%v", StartReason, err)
	}
	sharedGrows.Lock()
	defer sharedGrows.Unlock()
	for _, component := range needs {
		if err := cluster.Add(t.Context(), component); err != nil {
			t.Fatalf("%s%v", StartReason, err)
		}
	}
	return cluster
}

func startShared() (*Cluster, error) {
	if dir := os.Getenv(Env); dir != "" {
		return Open(dir)
	}
	return Start(context.Background(), Options{Progress: os.Stderr}) //nolint:forbidigo // Not a test's context: the control plane outlives the first test.
}

// Open returns the control plane that another process started in a directory.
func Open(dir string) (*Cluster, error) {
	run, err := readRun(dir)
	if err != nil {
		return nil, err
	}
	if !run.Alive() {
		return nil, fmt.Errorf("control plane in %s runs no more", dir)
	}
	client, err := newAPI(run)
	if err != nil {
		return nil, err
	}
	return &Cluster{run: run, api: client, options: Options{Kubernetes: run.release()}}, nil
}

// releaseOfRun is the release of the shared control plane, or empty when there is none.
func releaseOfRun() string {
	dir := os.Getenv(Env)
	if dir == "" {
		return ""
	}
	run, err := readRun(dir)
	if err != nil {
		return ""
	}
	return run.release()
}

// Private starts a control plane for one test, which may do anything to it. It has the
// release of this test run, unless the test names one or needs a real node, which exists for
// one release only.
func Private(t testing.TB, options Options) *Cluster {
	t.Helper()
	inTierOf(t, options.Programs())
	if options.Kubernetes == "" && !slices.Contains(options.With, Node) {
		options.Kubernetes = releaseOfRun()
	}
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	cluster, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stop control plane: %v", err)
		}
	})
	return cluster
}
