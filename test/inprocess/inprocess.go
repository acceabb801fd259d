// Package inprocess runs the product in the test process: the same command line, the same
// output and exit code as the built program, without the start of a process, and under the
// eyes of the race detector.
//
// A test that kills or freezes the controller, or that is about its environment, its
// memory or its libraries' log, starts the built program with package testkit.
package inprocess

import (
	"context"
	"flag"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/internal/cli"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// Main is the TestMain of a package that runs the product. It runs more tests at once than
// there are cores, because they mostly wait for the control plane, unless the command line
// says how many. What the tests share ends after them.
func Main(m *testing.M, parallel int, after ...func()) {
	// The libraries keep these in variables of the process. A test reads the product's log.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	for name, value := range testkit.FastDetection() {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	for _, end := range after {
		end()
	}
	os.Exit(code)
}

// Command is a command line of the product.
type Command struct {
	// Program is the name of the executable, for a drop-in; empty is lockstep.
	Program string
	Args    []string
	// Env are variables besides those of the test process: "NAME=value". What a library
	// reads from the environment itself doesn't see them.
	Env []string
	// Clock is how far the clock is off.
	Clock time.Duration
}

// Start runs a command line until the test ends or stops it.
func Start(t testing.TB, c Command) *labtest.Running {
	t.Helper()
	if c.Program == "" {
		c.Program = "lockstep"
	}
	c.Args = slices.Clone(c.Args) // the caller may append to a list again
	return labtest.StartFunction(t, labtest.Function{
		Name: c.Program, Args: c.Args,
		Run: func(ctx context.Context, stdout, stderr io.Writer) int {
			return cli.Run(ctx, c.Args, cli.Environment{
				Stdout: stdout, Stderr: stderr, Lookup: c.lookup, Program: c.Program, Version: labtest.Version,
				Now: func() time.Time { return time.Now().Add(c.Clock) },
			})
		},
	})
}

// Run runs a command line of lockstep to its end.
func Run(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	r := Start(t, Command{Args: args})
	code = r.ExitCode(t, testkit.Patience)
	return r.Stdout(), r.Stderr(), code
}

// lookup finds a variable. The test process collects its garbage as it likes.
func (c Command) lookup(name string) (string, bool) {
	for _, pair := range c.Env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value, true
		}
	}
	if name == "GOGC" {
		return "100", true
	}
	return os.LookupEnv(name)
}

// StartController runs the controller on a world, as [testkit.World.StartController] does.
func StartController(t testing.TB, w *testkit.World, flags ...string) *testkit.Controller {
	t.Helper()
	return StartControllerAs(t, w, w.Cluster.Kubeconfig(), flags...)
}

// StartControllerAs does the same with the permissions and the address of a kubeconfig.
func StartControllerAs(t testing.TB, w *testkit.World, kubeconfig string, flags ...string) *testkit.Controller {
	t.Helper()
	return testkit.Started(t, Start(t, Command{Args: w.ControllerArgs(kubeconfig, flags...), Clock: w.Clock}))
}

// StartReady runs the controller and waits until it is ready.
func StartReady(t testing.TB, w *testkit.World, flags ...string) *testkit.Controller {
	t.Helper()
	c := StartController(t, w, flags...)
	c.AwaitReady(t, true)
	return c
}
