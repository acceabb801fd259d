package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	goodSource = "package main\n\nfunc main() { print(\"hello\") }\n"
	badSource  = "package main\n\nfunc main() { undefinedName() }\n"
)

// hello is the recipe of a small program in a module of its own.
func hello(t *testing.T, source string) recipe {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.org/hello\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), source)
	write(t, filepath.Join(dir, "assets", "a.yaml"), "a: 1\n")
	return recipe{
		program: Program{Name: "hello", Module: "example.org/hello", Package: "example.org/hello", Assets: []string{"assets/*.yaml"}},
		version: "1.0.0", dir: dir,
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBuildMakesWhatIsMissingAndSaysSo(t *testing.T) {
	var progress strings.Builder
	b := &Builder{cache: t.TempDir(), progress: &progress}
	r := hello(t, goodSource)
	if err := b.buildMissing(t.Context(), []recipe{r}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(r.path(b.cache)).CombinedOutput()
	if err != nil || string(out) != "hello" {
		t.Errorf("the built program says %q, error %v", out, err)
	}
	files, err := Built{Program: r.program, Path: r.path(b.cache)}.Files("assets/*.yaml")
	if err != nil || len(files) != 1 {
		t.Errorf("kept assets are %q, error %v, want one", files, err)
	}
	lines := strings.Split(progress.String(), "\n")
	if !strings.HasPrefix(lines[0], "building hello 1.0.0, first time only, about ") || !strings.HasPrefix(lines[1], "built hello 1.0.0 in ") {
		t.Errorf("progress is %q", progress.String())
	}

	progress.Reset()
	if err := b.buildMissing(t.Context(), []recipe{r}); err != nil || progress.String() != "" {
		t.Errorf("what exists is built again: error %v, progress %q", err, progress.String())
	}
}

func TestBuildRemovesWhatAKilledBuilderLeft(t *testing.T) {
	b := &Builder{cache: t.TempDir(), progress: &strings.Builder{}}
	write(t, filepath.Join(b.cache, "building-123", "half"), "a program")
	if err := b.buildMissing(t.Context(), []recipe{hello(t, goodSource)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bin", "build.lock"}, list(t, b.cache)); diff != "" {
		t.Errorf("files in the cache (-want +got):\n%s", diff)
	}
}

func TestBuildKeepsNothingOfAFailure(t *testing.T) {
	b := &Builder{cache: t.TempDir(), progress: &strings.Builder{}}
	r := hello(t, badSource)
	err := b.buildMissing(t.Context(), []recipe{r})
	if err == nil || !strings.Contains(err.Error(), "build hello 1.0.0") || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("error is %v, want the program and the compiler's words", err)
	}
	if !b.missing(r) {
		t.Error("a program that does not compile counts as built")
	}
	if diff := cmp.Diff([]string{"build.lock"}, list(t, b.cache)); diff != "" {
		t.Errorf("files in the cache (-want +got):\n%s", diff)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestTwoBuildersBuildOnce(t *testing.T) {
	cache, r := t.TempDir(), hello(t, goodSource)
	var progress [2]strings.Builder
	var group sync.WaitGroup
	for i := range progress {
		group.Go(func() {
			b := &Builder{cache: cache, progress: &progress[i]}
			if err := b.buildMissing(t.Context(), []recipe{r}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	all := progress[0].String() + progress[1].String()
	if got := strings.Count(all, "building hello"); got != 1 {
		t.Errorf("%d builds, want 1; progress:\n%s", got, all)
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	b := &Builder{cache: t.TempDir(), progress: &strings.Builder{}}
	unlock, err := Lock(t.Context(), filepath.Join(b.cache, "build.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	gone := errors.New("nobody waits any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := b.buildMissing(ctx, []recipe{hello(t, goodSource)}); !errors.Is(err, gone) {
		t.Errorf("error is %v, want %v", err, gone)
	}
}

func TestRecipesComeInTheOrderOfNeed(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	b := &Builder{root: root}
	recipes, err := b.recipes([]string{ArgoRollouts, KWOK, Helm3, Helm, ControllerManager, Etcd, APIServer})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, batch := range batches(recipes) {
		var programs []string
		for _, r := range batch {
			programs = append(programs, r.program.Name)
		}
		got = append(got, programs)
	}
	want := [][]string{{Etcd, APIServer, ControllerManager, ArgoRollouts}, {KWOK}, {Helm}, {Helm3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}
