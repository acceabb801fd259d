// Command fuzz runs every fuzz target of the repository for a while, one after the other:
// go test fuzzes only one target of one package at a time.
//
//	go run ./test/fuzz --time 10s            all
//	go run ./test/fuzz --total 60s           all, in a minute
//	go run ./test/fuzz FuzzSplit FuzzParse   those with these names
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

const usage = `Fuzzes every parser of the repository for a while.

Usage:
  go run ./test/fuzz [--time 10s | --total 60s] [NAME…]

A NAME is a fuzz target, such as FuzzParseImage; packages may have targets of the same name,
and then all of them run. --time is how long each target runs, --total how long all of them
run together; neither counts the time to compile them.
An input that fails is kept in the testdata directory of its package, where every later test
run tries it: commit it with the fix.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command executes the command line and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	each := flags.Duration("time", 10*time.Second, "")
	total := flags.Duration("total", 0, "")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err == nil && (*each <= 0 || *total < 0) {
		err = fmt.Errorf("--time %s, --total %s: a target needs time", *each, *total)
	}
	if err != nil {
		fmt.Fprintf(stderr, "fuzz: %v\n\n%s", err, usage)
		return 2
	}
	if err := run(ctx, *each, *total, flags.Args(), stdout); err != nil {
		fmt.Fprintf(stderr, "fuzz: %v\n", err)
		return 1
	}
	return 0
}

// target is a fuzz function and the directory of its package, such as internal/agent/core/argv.
type target struct{ dir, name string }

func (t target) String() string { return t.dir + " " + t.name }

// run gives each target the same time: its share of the total, if there is one.
func run(ctx context.Context, each, total time.Duration, names []string, out io.Writer) error {
	root, err := program.Root()
	if err != nil {
		return err
	}
	targets, err := find(root, names)
	if err != nil {
		return err
	}
	if total > 0 {
		each = total / time.Duration(len(targets))
	}
	var failed []error
	for i, t := range targets {
		began := time.Now()
		output, err := t.fuzz(ctx, root, each)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted at %s", t)
		}
		result := "ok"
		if err != nil && !onlyLate(output) {
			result = "FAIL"
			failed = append(failed, fmt.Errorf("%s: %w", t, err))
		}
		fmt.Fprintf(out, "[%d/%d] %-4s %s in %s%s\n", i+1, len(targets), result, t, time.Since(began).Round(time.Second), executions(output))
		if result != "ok" {
			fmt.Fprintln(out, output)
		}
	}
	return errors.Join(failed...)
}

// find lists the targets of the root's module, all or those with a name.
func find(root string, names []string) ([]target, error) {
	var all []target
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && foreign(path):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // It is the developer's own checkout.
		for _, name := range targetsIn(string(text)) {
			if len(names) == 0 || slices.Contains(names, name) {
				all = append(all, target{filepath.ToSlash(dir), name})
			}
		}
		return err
	})
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t target) bool { return t.name == name }) {
			err = errors.Join(err, fmt.Errorf("there is no fuzz target %s", name))
		}
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("there are no fuzz targets in %s", root)
	}
	return all, err
}

// foreign reports whether a directory isn't one of the module's packages.
func foreign(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "bin" || name == "dist" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// targetsIn names the fuzz targets of a file.
func targetsIn(text string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// fuzz returns the output, whatever the result. Go takes up to a minute to minimise a
// failing input; here that is limited to the target's time.
func (t target) fuzz(ctx context.Context, root string, each time.Duration) (string, error) {
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), "-fuzzminimizetime="+each.String(), "./"+t.dir)
	command.Dir = root
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if err == nil && !strings.Contains(output.String(), "fuzz: elapsed") {
		err = errors.New("nothing was fuzzed")
	}
	return strings.TrimSpace(output.String()), err
}

// onlyLate reports whether a target failed only because its time was over. Before release
// 1.27, Go sometimes reports the end of -fuzztime as a failure (go.dev/issue/75804). A
// failing input is always written to a file.
func onlyLate(output string) bool {
	late := regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w* \([0-9.]+s\)\n    context deadline exceeded\nFAIL$`).MatchString(output)
	return late && strings.Count(output, "--- FAIL") == 1 && !strings.Contains(output, "Failing input written") && !strings.Contains(output, "panic:")
}

// executions is how often the target ran, from the last progress line.
func executions(output string) string {
	found := regexp.MustCompile(`execs: (\d+)`).FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		return ""
	}
	return ", " + found[len(found)-1][1] + " inputs"
}
