package labtest

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Binary builds a main package of the repository, given as "./cmd/lockstep", and
// returns the path of the program. It has the race detector when the test has.
//
// The program is kept in the checkout's bin folder, where go build finds by
// itself that nothing has changed; a lock lets the test processes of one run
// build it only once.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, args := filepath.Join(root, "bin", "test"), []string{"build"}
	if raceEnabled {
		dir, args = filepath.Join(root, "bin", "test-race"), append(args, "-race")
	}
	unlock, err := program.Lock(t.Context(), filepath.Join(dir, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	file := filepath.Join(dir, path.Base(pkg))
	build := exec.CommandContext(t.Context(), "go", append(args, "-o", file, pkg)...) //nolint:gosec // The test says what to build.
	build.Dir, build.Env = root, os.Environ()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return file
}
