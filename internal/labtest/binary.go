package labtest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Version is what programs made by [Binary] say of themselves. It is set as the
// Makefile sets it, so that a test sees when that no longer works.
const Version = "0.0.0-test"

const versioned = "-ldflags=-X main.version=" + Version

// built are the programs that this test process has built: what they are made of
// does not change while it runs, and to ask go build costs a second each time.
//
//nolint:gochecknoglobals // It is the memory of the process.
var built sync.Map

// Binary builds a main package of the repository, given as "./cmd/lockstep", and
// returns the path of the program. It has the race detector when the test has.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	if raceEnabled {
		return build(t, pkg, "test-race", nil, versioned, "-race")
	}
	return build(t, pkg, "test", nil, versioned)
}

// StaticBinary builds a main package of the repository without C, as it goes into
// an image, and returns the path of the program.
func StaticBinary(t testing.TB, pkg string) string {
	t.Helper()
	return build(t, pkg, "test-static", []string{"CGO_ENABLED=0"}, "-ldflags=-s -w")
}

// build builds a program into a folder of the checkout's bin folder, where go
// build finds by itself that nothing has changed; a lock lets the test processes
// of one run build it only once.
func build(t testing.TB, pkg, folder string, env []string, flags ...string) string {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "bin", folder)
	file := filepath.Join(dir, path.Base(pkg))
	if _, done := built.Load(file); done {
		return file
	}
	unlock, err := program.Lock(t.Context(), filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	args := append(append([]string{"build"}, flags...), "-o", file, pkg)
	cmd := exec.CommandContext(t.Context(), "go", args...) //nolint:gosec // The test says what to build.
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	built.Store(file, true)
	return file
}
