package internal_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesOfTheLoopPointOneWay: in the package that is read most, a file uses what is below it.
// Whoever begins at the bottom never has to look up.
func TestFilesOfTheLoopPointOneWay(t *testing.T) {
	t.Parallel()
	uses := fileUses(t, "feature/rollouts")
	if len(uses) < 10 {
		t.Fatalf("only %d files use others", len(uses))
	}
	for len(uses) > 0 {
		// A file that uses none of those that are left can be put below them.
		lowest := slices.DeleteFunc(slices.Sorted(maps.Keys(uses)), func(file string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Keys(uses[file])), func(used string) bool { return uses[used] != nil })
		})
		if len(lowest) == 0 {
			t.Fatalf("these files use one another: %v", uses)
		}
		for _, file := range lowest {
			delete(uses, file)
		}
	}
}

// fileUses are, for each file of a package, the others that it uses, and by which names.
func fileUses(t *testing.T, dir string) map[string]map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// What is imported is of no interest, so it is not read, and what depends on it is an error
	// that is of no interest either.
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: nothing{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, set, files, info)
	uses := map[string]map[string][]string{}
	for name, object := range info.Uses {
		_, method := object.(*types.Func)
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !method {
			continue
		}
		user, used := filepath.Base(set.Position(name.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if user == used {
			continue
		}
		if uses[user] == nil {
			uses[user] = map[string][]string{}
		}
		if !slices.Contains(uses[user][used], object.Name()) {
			uses[user][used] = append(uses[user][used], object.Name())
		}
	}
	return uses
}

type nothing struct{}

func (nothing) Import(string) (*types.Package, error) { return nil, errors.New("not read") }
