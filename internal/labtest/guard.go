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

// guard is a process that outlives this one and takes away what this one leaves
// when it is killed: sessions of commands, directories and control groups of control
// planes. It hears of the end by the end of a pipe that only this process holds open.
//
// The parent-death signal is not enough: it reaches children only, it cannot be
// reverted once a control plane shall stay, and it removes no directory.
type guard struct {
	mu   sync.Mutex
	pipe *os.File // nil where there is no guard
}

// guardOnce starts at most one guard per process.
//
//nolint:gochecknoglobals // What belongs to the process has to live somewhere in it.
var guardOnce = sync.OnceValues(startGuard)

// startGuard needs what only Linux shows of processes. Elsewhere the next start
// clears up.
func startGuard() (*guard, error) {
	if runtime.GOOS != "linux" {
		return &guard{}, nil
	}
	// No test's context: the guard is everybody's.
	// The deadline is for a go command that hangs: the first build compiles the standard library.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) //nolint:forbidigo // See above.
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

// unmarked is an environment that belongs to no control plane: the guard of a test
// must survive the end of the control plane that the test runs on.
func unmarked(environment []string) []string {
	return slices.DeleteFunc(environment, func(entry string) bool { return strings.HasPrefix(entry, remains.Env+"=") })
}

func planeOf(dir string) string { return "plane " + dir }

func sessionOf(leader process.Identity) string { return "session " + leader.String() }

// hold asks the guard to take something away when this process is gone.
func (g *guard) hold(thing string) error { return g.tell("hold " + thing) }

// drop tells the guard that something is gone, or shall stay.
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

// buildHelper builds the program that is the guard and that is around a real node.
// It has only the standard library in it, so that takes a second, or nothing when
// it is there already.
func buildHelper(ctx context.Context) (string, error) {
	root, err := program.Root()
	if err != nil {
		return "", err
	}
	return goBuild(ctx, filepath.Join(root, "bin", "lab-helper"), "./lab/node", "-ldflags=-s -w")
}
