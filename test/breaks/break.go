package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Break is one defect and the change that reintroduces it.
type Break struct {
	ID, Title     string
	File          string
	Package, Test string
	Find, Replace string

	text string // of the whole file
}

// unknownError is a name on the command line without a matching break.
type unknownError struct{ name string }

func (e unknownError) Error() string { return fmt.Sprintf("no break matches %q", e.name) }

// load reads the breaks of a directory whose names begin with one of the arguments.
func load(dir string, wanted []string) ([]Break, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.break"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there are no breaks in %s", dir)
	}
	var breaks []Break
	found := map[string]bool{}
	for _, name := range names {
		id := strings.TrimSuffix(filepath.Base(name), ".break")
		i := slices.IndexFunc(wanted, func(w string) bool { return id == w || strings.HasPrefix(id, w+"-") })
		if len(wanted) > 0 && i < 0 {
			continue
		}
		if i >= 0 {
			found[wanted[i]] = true
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
	for _, w := range wanted {
		if !found[w] {
			return nil, unknownError{w}
		}
	}
	return breaks, nil
}

// Parse parses one file.
func Parse(id, text string) (Break, error) {
	b := Break{ID: id, text: text}
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

// pattern is the value of -run that selects just one test.
func pattern(test string) string {
	var parts []string
	for part := range strings.SplitSeq(test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

// apply makes the change in a copy of the tree and returns a function that reverts it.
func (b Break) apply(tree string) (revert func() error, err error) {
	name := filepath.Join(tree, b.File)
	whole, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(whole), b.Find); n != 1 {
		return nil, fmt.Errorf("%s contains the text %d times, want once", b.File, n)
	}
	broken := strings.Replace(string(whole), b.Find, b.Replace, 1)
	if err := os.WriteFile(name, []byte(broken), 0o644); err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(name, whole, 0o644) }, nil
}
