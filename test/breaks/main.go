// Command breaks shows that the tests notice the defects that this product
// promises not to have. Each file beside it names one defect, one small change
// that brings the defect back, and the test that has to fail then:
//
//	# CC-14: a change of labels reloads the application
//	file: internal/feature/podsync/agent.go
//	test: ./internal/feature/podsync TestMetadataOnlyChange
//	-	if snap.Version == a.planned.version {
//	+	if false {
//
// Lines with - are the text to find, exactly once; lines with + replace it. The
// changes are made in a copy of the working tree. Everything must still compile:
// a test that builds the program would fail for any text that is not Go.
//
//	go run ./test/breaks            all
//	go run ./test/breaks CC-14 KR   some, by name or by the beginning of it
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Break is one defect and how to bring it back.
type Break struct {
	ID, Title     string
	File          string
	Package, Test string
	Find, Replace string
}

func main() {
	log.SetFlags(0)
	if slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		fmt.Println("usage: go run ./test/breaks [NAME…]\n\nBrings defects back in a copy of the tree and sees their tests fail: all of them, or those with\n" +
			"a name or the beginning of it, such as CC-14 or KR. \"make breaks BREAKS=KR\" builds what they need first.")
		return
	}
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, wanted []string) error {
	breaks, err := load("test/breaks", wanted)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lockstep-breaks-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyTree(ctx, dir); err != nil {
		return err
	}
	var missed []error
	for _, b := range breaks {
		if err := b.try(ctx, dir); err != nil {
			missed = append(missed, err)
			log.Printf("%-8s MISSED  %v", b.ID, err)
			continue
		}
		log.Printf("%-8s noticed by %s", b.ID, b.Test)
	}
	log.Printf("%d of %d defects are noticed", len(breaks)-len(missed), len(breaks))
	return errors.Join(missed...)
}

func load(dir string, wanted []string) ([]Break, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.break"))
	if err != nil {
		return nil, err
	}
	var breaks []Break
	for _, name := range names {
		id := strings.TrimSuffix(filepath.Base(name), ".break")
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w string) bool { return id == w || strings.HasPrefix(id, w+"-") }) {
			continue
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b, err := Parse(id, string(raw))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		breaks = append(breaks, b)
	}
	if len(breaks) == 0 {
		return nil, fmt.Errorf("no break matches %v", wanted)
	}
	return breaks, nil
}

// Parse reads one file.
func Parse(id, text string) (Break, error) {
	b := Break{ID: id}
	var find, replace []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			b.Title = line[2:]
		case strings.HasPrefix(line, "file: "):
			b.File = line[6:]
		case strings.HasPrefix(line, "test: "):
			b.Package, b.Test, _ = strings.Cut(line[6:], " ")
		case strings.HasPrefix(line, "-"):
			find = append(find, line[1:])
		case strings.HasPrefix(line, "+"):
			replace = append(replace, line[1:])
		default:
			return b, fmt.Errorf("line %q is not understood", line)
		}
	}
	b.Find, b.Replace = strings.Join(find, "\n"), strings.Join(replace, "\n")
	if b.File == "" || b.Package == "" || b.Test == "" || b.Find == "" {
		return b, errors.New("want # title, file:, test: PACKAGE TEST, and a - line")
	}
	return b, nil
}

// copyTree copies what git knows or would take, so that nothing built is copied.
func copyTree(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "sh", "-c", `git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$1"`, "sh", dir)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the working tree: %w\n%s", err, output)
	}
	return nil
}

// try makes the change, runs the test, and takes the change back.
func (b Break) try(ctx context.Context, dir string) error {
	name := filepath.Join(dir, b.File)
	whole, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%s: %w", b.ID, err)
	}
	if n := strings.Count(string(whole), b.Find); n != 1 {
		return fmt.Errorf("%s: %s holds the text %d times, want once", b.ID, b.File, n)
	}
	broken := strings.Replace(string(whole), b.Find, b.Replace, 1)
	if err := os.WriteFile(name, []byte(broken), 0o644); err != nil {
		return err
	}
	buildErr := build(ctx, dir)
	var output string
	var testErr error
	if buildErr == nil {
		output, testErr = b.test(ctx, dir)
	}
	if err := os.WriteFile(name, whole, 0o644); err != nil {
		return err
	}
	switch {
	case buildErr != nil:
		return fmt.Errorf("%s: the change does not compile, so no test says anything: %w", b.ID, buildErr)
	case testErr == nil:
		return fmt.Errorf("%s: %s passes although %q is back", b.ID, b.Test, b.Title)
	case !strings.Contains(output, "--- FAIL"):
		return fmt.Errorf("%s: the test did not run:\n%s", b.ID, output)
	}
	return nil
}

// build compiles every package; it links none.
func build(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "go", "build", "./...")
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

func (b Break) test(ctx context.Context, dir string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(b.Test, "/") {
		parts = append(parts, "^"+part+"$")
	}
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-timeout=5m", "-run", strings.Join(parts, "/"), b.Package)
	command.Dir = dir
	output, err := command.CombinedOutput()
	return string(output), err
}
