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

func build(t testing.TB, pkg, folder string, env []string, flags ...string) string {
	t.Helper()
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	file, err := goBuild(t.Context(), filepath.Join(root, "bin", folder), pkg, env, flags...)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// goBuild builds a program into a folder of the checkout's bin folder, where go
// build finds by itself that nothing has changed; a lock lets the processes of one
// test run build it only once.
func goBuild(ctx context.Context, dir, pkg string, env []string, flags ...string) (string, error) {
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
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	var out output
	p, err := process.Start(process.Spec{
		Path: tool, Args: append(append([]string{"build"}, flags...), "-o", file, pkg),
		Dir: root, Env: append(os.Environ(), env...), Stdout: &out, Stderr: &out,
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
