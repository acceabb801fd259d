package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/process"
	"github.com/lockstep-dev/lockstep/internal/labtest/remains"
)

const module = "github.com/lockstep-dev/lockstep"

// worker tries one break after the other in a copy of the tree.
type worker struct {
	*session
	tree    string
	cluster *labtest.Cluster // nil until a test needs one
}

func (w *worker) run(ctx context.Context) error {
	for last := ""; ctx.Err() == nil && !w.tired(); {
		g, ok := w.queue.next(last)
		if !ok {
			return nil
		}
		last = g.Package
		if err := w.judge(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// judge runs the test of a group without a break, and then with each. A test that fails without
// a break, in this tree and on this control plane, can't notice one.
func (w *worker) judge(ctx context.Context, g group) error {
	if err := w.prepare(ctx, g.Package); err != nil {
		return err
	}
	began := time.Now()
	control := w.control(ctx, g)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // Whatever was seen, the end of the run may be its cause.
	}
	took := time.Since(began)
	w.controlled(g, control, took)
	for _, b := range g.breaks {
		began = time.Now()
		late, missed := false, control
		if control == nil {
			late, missed = w.try(ctx, b, max(patience, took))
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Whatever was seen, the end of the run may be its cause.
		}
		if err := w.report(b, outcome{missed: missed, late: late, took: time.Since(began)}); err != nil {
			return err
		}
	}
	return nil
}

// control runs a test without a break and returns why it can't notice any.
func (w *worker) control(ctx context.Context, g group) error {
	r, err := w.test(ctx, g.Package, g.Test, 0)
	if err != nil {
		return err
	}
	return r.control(g)
}

// test runs one test. Unless it is zero, patience bounds each of its waits.
func (w *worker) test(ctx context.Context, pkg, test string, patience time.Duration) (testRun, error) {
	var env []string
	if patience > 0 {
		env = []string{labtest.PatienceEnv + "=" + patience.String()}
	}
	output, _, err := w.goCommand(ctx, env, "test", "-json", "-count=1", "-vet=off", "-timeout=30m", "-run", pattern(test), pkg)
	return readRun(output), err
}

// prepare starts the worker's control plane, unless "lab exec" has started one for all.
// Workers don't share one: a controller with a defect may act on the namespaces of others.
func (w *worker) prepare(ctx context.Context, pkg string) (err error) {
	if w.cluster != nil || !w.lab[pkg] || os.Getenv(labtest.Env) != "" {
		return nil
	}
	w.cluster, err = labtest.Start(ctx, labtest.Options{With: []labtest.Component{labtest.KWOK, labtest.ArgoRollouts}, Progress: os.Stderr})
	return err
}

func (w *worker) end() error {
	if w.cluster == nil {
		return nil
	}
	return w.cluster.Stop()
}

// try makes the change, runs the test, and reverts the change. It returns whether the test
// noticed the break by waiting in vain, or why the break counts as missed.
func (w *worker) try(ctx context.Context, b Break, patience time.Duration) (late bool, missed error) {
	revert, err := b.apply(w.tree)
	if err != nil {
		return false, err
	}
	defer func() { missed = errors.Join(missed, revert()) }()
	r, err := w.test(ctx, b.Package, b.Test, patience)
	if err != nil {
		return false, err
	}
	if err := r.verdict(b); err != nil {
		return false, err
	}
	return r.late(b.Test), w.compiles(ctx, b)
}

// compiles makes sure that a test which builds a program has not failed because the program
// doesn't compile: go test has compiled only its own packages. Listing export data compiles
// and doesn't link.
func (w *worker) compiles(ctx context.Context, b Break) error {
	if !w.lab[b.Package] || path.Ext(b.File) != ".go" {
		return nil
	}
	output, code, err := w.goCommand(ctx, nil, "list", "-export", "./cmd/...", "./lab", "./"+path.Dir(b.File))
	if err == nil && code != 0 {
		err = fmt.Errorf("the change does not compile, so no test says anything:\n%s", output)
	}
	return err
}

// goCommand runs go in the tree, with further variables, and returns its output and exit code.
func (w *worker) goCommand(ctx context.Context, env []string, args ...string) (text string, code int, err error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", 0, err
	}
	var output bytes.Buffer
	p, err := process.Start(process.Spec{Path: tool, Args: args, Dir: w.tree, Env: append(w.env(), env...), Stdout: &output, Stderr: &output})
	if err != nil {
		return "", 0, err
	}
	select {
	case <-p.Done():
		return strings.TrimSpace(output.String()), p.ExitCode(), nil
	case <-ctx.Done():
		return "", 0, errors.Join(context.Cause(ctx), p.Kill())
	}
}

// patience is how long a test waits for an event that a break prevents. It is shorter than
// elsewhere, because most breaks are noticed by such a wait. On a slow machine it is as long as the
// test took without a break.
const patience = 45 * time.Second

// env selects the tests of CI, on the worker's control plane.
func (w *worker) env() []string {
	env := append(os.Environ(), labtest.TierEnv+"="+string(labtest.TierAll))
	if w.cluster != nil {
		env = append(env, "KUBECONFIG="+w.cluster.Kubeconfig(), labtest.Env+"="+w.cluster.Dir(), remains.Mark(w.cluster.Dir()))
	}
	return env
}

// usersOfTheLab finds the packages whose tests may build and run programs.
func usersOfTheLab(ctx context.Context, tree string, breaks []Break) (map[string]bool, error) {
	args := []string{"list", "-test", "-f", `{{.ImportPath}}{{range .Deps}}{{if eq . "` + module + `/internal/labtest"}} lab{{end}}{{end}}`}
	seen := map[string]bool{}
	for _, b := range breaks {
		if !seen[b.Package] {
			args = append(args, b.Package)
		}
		seen[b.Package] = true
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = tree
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the tests: %w", err)
	}
	users := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), ".test lab"); ok {
			users["."+strings.TrimPrefix(name, module)] = true
		}
	}
	return users, nil
}
