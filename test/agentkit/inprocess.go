package agentkit

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/cli"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// Call is a command line of the agent.
type Call struct {
	// Name is the name of the program; empty means its own.
	Name string
	Args []string
	// Env is the whole environment that the agent sees.
	Env []string
}

// InProcess runs the agent in this process until the test ends. Its output is shown when
// the test fails. The client library's own log is the whole process's: TestMain sets it.
func InProcess(t testing.TB, call Call) *labtest.Running {
	t.Helper()
	name := call.Name
	if name == "" {
		name = "lockstep-sync"
	}
	return labtest.StartFunction(t, labtest.Function{
		Name: name, Args: call.Args,
		Run: func(ctx context.Context, stdout, stderr io.Writer) int {
			return cli.Run(ctx, cli.Env{
				Args: append([]string{name}, call.Args...), Lookup: lookup(call.Env), Environ: func() []string { return call.Env },
				Stdout: stdout, Stderr: stderr, Now: time.Now, Version: "test",
			})
		},
	})
}

// lookup finds variables in an environment; the last one of a name counts.
func lookup(environ []string) func(string) (string, bool) {
	variables := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		variables[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}
