package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBreaksCompile: a break that doesn't compile says nothing about tests. Each changed
// package is only checked here, which takes seconds; a run of the breaks compiles it.
func TestBreaksCompile(t *testing.T) {
	t.Parallel()
	breaks, err := load(".", nil)
	if err != nil {
		t.Fatal(err)
	}
	breaks = slices.DeleteFunc(breaks, func(b Break) bool { return path.Ext(b.File) != ".go" })
	packages := listed(t, breaks)
	imported := importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(packages[name].Export)
	})
	byFolder := map[string]compiledPackage{}
	for _, p := range packages {
		byFolder[p.Dir] = p
	}
	for _, b := range breaks {
		if err := byFolder[filepath.Dir(absolute(t, b.File))].check(t, imported, b); err != nil {
			t.Errorf("%s: %v", b.ID, err)
		}
	}
}

// compiledPackage is what "go list -export" says of a package.
type compiledPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

// listed returns the packages of the changed files and everything that they import, by
// import path.
func listed(t *testing.T, breaks []Break) map[string]compiledPackage {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for _, b := range breaks {
		args = append(args, "./"+path.Dir(b.File))
	}
	command := exec.Command("go", args...)
	command.Dir = "../.."
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]compiledPackage{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p compiledPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// check has the package type-checked with the change of a break.
func (p compiledPackage) check(t *testing.T, imported types.Importer, b Break) error {
	t.Helper()
	if !slices.Contains(p.GoFiles, path.Base(b.File)) {
		return fmt.Errorf("%s is in no package", b.File)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		text := slurped(t, filepath.Join(p.Dir, name))
		if name == path.Base(b.File) {
			text = strings.Replace(text, b.Find, b.Replace, 1)
		}
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: imported}
	_, err := config.Check(p.ImportPath, files, parsed, nil)
	return err
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	whole, err := filepath.Abs(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	return whole
}
