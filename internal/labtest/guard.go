package labtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

// guard is a process that outlives this one and cleans up after it if it is killed: sessions
// of commands, directories and control groups of control planes. The guard detects the end
// of this process by the end of a pipe that only this process holds open.
//
// The parent-death signal is not enough: it only reaches children, it can't be reverted for
// a control plane that is to stay, and it doesn't remove directories.
type guard struct {
	mu   sync.Mutex
	pipe *os.File // nil where there is no guard
}

// guardOnce starts at most one guard per process.
//
//nolint:gochecknoglobals // What belongs to the process has to live somewhere in it.
var guardOnce = sync.OnceValues(startGuard)

// startGuard uses process information that only Linux provides. On other systems the next
// start cleans up.
func startGuard() (*guard, error) {
	if runtime.GOOS != "linux" {
		return &guard{}, nil
	}
	// The deadline is for a go command that hangs: the first build compiles the standard library.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) //nolint:forbidigo // Not a test's context: all tests share the guard.
	defer cancel()
	helper, err := buildHelper(ctx)
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a guard: %w", err)
	}
	defer read.Close()
	_, err = process.Start(process.Spec{
		Path: helper, Args: []string{"guard"}, Dir: "/", Env: unmarked(os.Environ()), Stdin: read, Detached: true,
	})
	if err != nil {
		return nil, err
	}
	return &guard{pipe: write}, nil
}

// unmarked is an environment without a control plane's mark: a test's guard must survive the
// end of the control plane that the test runs on.
func unmarked(environment []string) []string {
	return slices.DeleteFunc(environment, func(entry string) bool { return strings.HasPrefix(entry, remains.Env+"=") })
}

func planeOf(dir string) string { return "plane " + dir }

func sessionOf(leader process.Identity) string { return "session " + leader.String() }

// hold makes the guard clean something up when this process is gone.
func (g *guard) hold(thing string) error { return g.tell("hold " + thing) }

// drop makes the guard forget something that is gone, or has to stay.
func (g *guard) drop(thing string) error { return g.tell("drop " + thing) }

func (g *guard) tell(line string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return nil
	}
	if _, err := g.pipe.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("tell the guard: %w", err)
	}
	return nil
}

// buildHelper builds the program that runs the guard and the real node. It only links the
// standard library, so that takes a second, or no time when it is built already.
func buildHelper(ctx context.Context) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	return goBuild(ctx, filepath.Join(root, "bin", "lab-helper"), "./lab/node", "-ldflags=-s -w")
}
