package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const root = "../.."

// TestDocumentsAreUpToDate says so earlier than "make verify", and in words.
func TestDocumentsAreUpToDate(t *testing.T) {
	t.Parallel()
	fresh := t.TempDir()
	if err := write(fresh); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"reference", "cli"} {
		want, got := contents(t, filepath.Join(fresh, dir)), contents(t, filepath.Join(root, "docs", dir))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/%s is out of date; run \"make docs\" (-want +got):\n%s", dir, diff)
		}
	}
}

// contents are the generated pages of a directory, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		if text := read(t, file); strings.Contains(text, "<!-- Written by ") {
			all[filepath.Base(file)] = text
		}
	}
	return all
}

// TestEveryMetricIsDocumented compares the reference with the names that stand
// in the product's code, wherever they are registered.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := metricsPage()
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, found := range regexp.MustCompile("(?m)^\\| `(lockstep_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		documented = append(documented, found[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(metricNames(t), documented); diff != "" {
		t.Errorf("names of metrics (-code +reference):\n%s", diff)
	}
}

// metricNames are the string literals of the product that can only be the names
// of metrics.
func metricNames(t *testing.T) []string {
	t.Helper()
	name := regexp.MustCompile(`^"(lockstep_[a-z_]+)"$`)
	var names []string
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for node := range ast.Preorder(file) {
			if literal, ok := node.(*ast.BasicLit); ok && name.MatchString(literal.Value) {
				names = append(names, strings.Trim(literal.Value, `"`))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestEveryKeyIsDocumented reads the keys out of the source, so that a new one
// cannot be forgotten.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	source := read(t, filepath.Join(root, "internal/core/settings/keys.go"))
	found := regexp.MustCompile(`= Prefix \+ "([a-z]+)"`).FindAllStringSubmatch(source, -1)
	if len(found) == 0 {
		t.Fatal("no key was found")
	}
	for _, match := range found {
		key := settings.Prefix + match[1]
		if !slices.ContainsFunc(settings.References(), func(r settings.Reference) bool { return r.Key == key }) {
			t.Errorf("%s is not in settings.References", key)
		}
	}
}

// TestEveryStateIsDocumented: a state that only the commands give is a constant of its own name
// in the package that answers them.
func TestEveryStateIsDocumented(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "internal/feature/ask/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		for _, match := range regexp.MustCompile(`(?m)^(?:const|\t)\s*([A-Z]\w+)\s*= "(\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			if match[1] != match[2] {
				continue
			}
			found++
			if !strings.Contains(reasonsPage(), "`"+match[2]+"` |") {
				t.Errorf("the page of reasons lacks the state %s", match[2])
			}
		}
	}
	if found == 0 {
		t.Error("no state was found; this test looks in the wrong place")
	}
}

// TestPathsExist: a document that names a file or directory of the repository, as
// `internal/…`, names one that exists. Links are followed in test/docs.
func TestPathsExist(t *testing.T) {
	t.Parallel()
	place := regexp.MustCompile("`((?:cmd|internal|lab|test|docs|examples|bench|charts)/[A-Za-z0-9_./-]*)`")
	for _, file := range documents(t) {
		text := read(t, file)
		for _, m := range place.FindAllStringSubmatch(text, -1) {
			mustExist(t, file, filepath.Join(root, m[1]))
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 5 {
		t.Fatalf("found only %q", files)
	}
	return files
}

func mustExist(t *testing.T, file, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s names %s, which does not exist", filepath.Base(file), strings.TrimPrefix(path, root+"/"))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
