package labtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Version is the version that programs built by [Binary] report. It is
// set as the Makefile sets it, so a test notices when that stops working.
const Version = "0.0.0-test"

// linked are the linker flags of "make build". Without debugging information linking takes
// half the time.
const linked = "-ldflags=-s -w -X main.version=" + Version

// built are the programs that this test process has built. Their sources don't change while
// it runs, and running go build costs a second each time.
//
//nolint:gochecknoglobals // It is the memory of the process.
var built sync.Map

// Binary builds a main package of the repository, such as "./cmd/lockstep", and returns the
// path of the program. It is built like in "make build" and "make images", so they share the
// compiled packages, and the program runs in an empty image. It never has the race detector:
// a test that runs the product in its own process has it.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	file, err := goBuild(t.Context(), filepath.Join(root, "bin", "test"), pkg, linked)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// goBuild builds a program into the checkout's bin directory, where go build finds by itself
// that nothing has changed. A lock lets the processes of one test run build it only once.
func goBuild(ctx context.Context, dir, pkg, linker string) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, path.Base(pkg))
	if _, done := built.Load(file); done {
		return file, nil
	}
	unlock, err := program.Lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another test of this process may have built it while this one waited.
	if _, done := built.Load(file); done {
		return file, nil
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	var out output
	p, err := process.Start(process.Spec{
		Path: tool, Args: []string{"build", "-trimpath", linker, "-o", file, pkg},
		Dir: root, Env: append(os.Environ(), "CGO_ENABLED=0"), Stdout: &out, Stderr: &out,
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return "", errors.Join(fmt.Errorf("build %s: %w", pkg, context.Cause(ctx)), p.Kill())
	}
	if err := p.Err(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out.String())
	}
	built.Store(file, true)
	return file, nil
}
