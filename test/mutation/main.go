// Command mutation changes the pure code one operator at a time and runs the tests of its package
// (gremlins does both). A change that no test notices is a survivor. survivors.txt is how many there
// are of each package: more than that fails.
//
//	go run ./test/mutation --gremlins FILE                         all packages
//	go run ./test/mutation --gremlins FILE ./internal/core/window  some
//	go run ./test/mutation --gremlins FILE --record …              and keep the new numbers
package main

import (
	"context"
	"encoding/json"
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

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

const recordFile = "test/mutation/survivors.txt"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "mutation: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	gremlins := flags.String("gremlins", "", "the program gremlins")
	keep := flags.Bool("record", false, "write the new numbers to "+recordFile)
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := program.Root()
	if err != nil {
		return err
	}
	if *gremlins, err = filepath.Abs(*gremlins); err != nil {
		return err
	}
	all, err := packages(root)
	if err != nil {
		return err
	}
	wanted := flags.Args()
	if len(wanted) == 0 {
		wanted = all
	}
	text, err := os.ReadFile(filepath.Join(root, recordFile))
	if err != nil {
		return err
	}
	record, err := parseRecord(string(text))
	if err != nil {
		return err
	}
	if err := control(ctx, *gremlins); err != nil {
		return err
	}
	var failed []error
	for _, pkg := range wanted {
		pkg = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(pkg)), "./")
		args, err := exclusions(root, pkg)
		if err != nil {
			return err
		}
		found, err := measure(ctx, root, *gremlins, pkg, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		was, known := record[pkg]
		fmt.Fprintln(out, pkg, found.describe(was, known))
		if *keep {
			record[pkg] = found.counts
			if err := os.WriteFile(filepath.Join(root, recordFile), []byte(formatRecord(record, all)), 0o644); err != nil {
				return err
			}
			continue
		}
		known = known || strings.Contains(string(text), unmeasured+pkg+"\n")
		failed = append(failed, found.judge(pkg, was, known))
	}
	return errors.Join(failed...)
}

// packages lists what is mutated: the cores of both programs, and the decisions of their features.
func packages(root string) ([]string, error) {
	found := map[string]bool{}
	for _, pattern := range []string{"internal/core/*/*.go", "internal/agent/core/*/*.go", "internal/feature/*/decide*.go", "internal/agent/feature/*/decide*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			dir, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				return nil, err
			}
			found[filepath.ToSlash(dir)] = true
		}
	}
	return sortedKeys(found), nil
}

// control has gremlins change code that no test looks at: a tool that calls everything noticed, because
// its tests don't run at all, measures nothing.
func control(ctx context.Context, gremlins string) error {
	root, err := os.MkdirTemp("", "mutation-control-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	for name, text := range map[string]string{
		"go.mod":      "module control\n\ngo 1.26\n",
		"a/a.go":      "package a\n\nfunc Sum(a, b int) int { return a + b }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSum(*testing.T) { Sum(1, 2) }\n",
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	found, err := measure(ctx, root, gremlins, "a")
	if err == nil && found.counts != (counts{Lived: 1}) {
		err = fmt.Errorf("%+v, want one survivor", found.counts)
	}
	if err != nil {
		return fmt.Errorf("%s doesn't find a survivor where there is one: %w", gremlins, err)
	}
	return nil
}

// measure runs gremlins on a package.
func measure(ctx context.Context, root, gremlins, pkg string, exclusions ...string) (findings, error) {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return findings{}, err
	}
	defer os.RemoveAll(dir)
	report := filepath.Join(dir, "report.json")
	args := append([]string{"unleash", "--workers", "1", "--timeout-coefficient", "10", "--invert-logical", "--output", report}, exclusions...)
	command := exec.CommandContext(ctx, gremlins, append(args, "./"+pkg)...)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return findings{}, fmt.Errorf("%w\n%s", err, output)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return findings{}, err
	}
	return parseReport(text)
}

// exclusions leave only the decisions of a feature.
func exclusions(root, pkg string) ([]string, error) {
	if !strings.Contains(pkg, "/feature/") {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(root, pkg))
	if err != nil {
		return nil, err
	}
	var args []string
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "decide") {
			args = append(args, "--exclude-files", "^"+regexp.QuoteMeta(name)+"$")
		}
	}
	return args, nil
}

// parseReport reads what gremlins has found.
func parseReport(text []byte) (findings, error) {
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return findings{}, fmt.Errorf("read the report: %w", err)
	}
	var f findings
	for _, file := range report.Files {
		for _, m := range file.Mutations {
			switch m.Status {
			case "LIVED":
				f.Lived++
				f.survivors = append(f.survivors, fmt.Sprintf("%s:%d:%d %s", file.Name, m.Line, m.Column, m.Type))
			case "NOT COVERED":
				f.Uncovered++
			case "KILLED", "TIMED OUT":
				f.Noticed++
			}
		}
	}
	slices.Sort(f.survivors)
	if f.Lived+f.Uncovered+f.Noticed == 0 {
		return f, errors.New("gremlins found nothing to change")
	}
	return f, nil
}
