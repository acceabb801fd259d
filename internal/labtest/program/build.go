package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// Builder builds programs of one checkout into one cache.
type Builder struct {
	root     string
	cache    string
	progress io.Writer
}

// NewBuilder returns a builder for the repository around the working directory. It reports
// builds to progress.
func NewBuilder(progress io.Writer) (*Builder, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	return &Builder{root: root, cache: cache, progress: progress}, nil
}

// Built describes a program that can be run.
type Built struct {
	Program
	Version string
	Path    string // the executable
}

// Files lists the kept assets that match a pattern.
func (b Built) Files(pattern string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(b.Path), pattern))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find %s of %s beside %s: %w", pattern, b.Name, b.Path, cmp.Or(err, os.ErrNotExist))
	}
	return files, nil
}

// Build makes sure that programs exist, building those that are missing, and
// returns them by name.
//
// Missing programs of one module are built by one go build. Only one process
// builds at a time: builds fill all cores anyway, and a second process mostly
// waits for the very same programs.
func (b *Builder) Build(ctx context.Context, names ...string) (map[string]Built, error) {
	recipes, err := b.recipes(names)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(recipes, b.missing) {
		if err := b.buildMissing(ctx, recipes); err != nil {
			return nil, err
		}
	}
	built := make(map[string]Built, len(recipes))
	for _, r := range recipes {
		built[r.program.Name] = b.built(r)
	}
	return built, nil
}

// Find returns the programs that are built already, by name, and lists the others in the
// order of need.
func (b *Builder) Find(names ...string) (built map[string]Built, missing []Built, err error) {
	recipes, err := b.recipes(names)
	if err != nil {
		return nil, nil, err
	}
	built = map[string]Built{}
	for _, r := range recipes {
		if b.missing(r) {
			missing = append(missing, b.built(r))
		} else {
			built[r.program.Name] = b.built(r)
		}
	}
	return built, missing, nil
}

func (b *Builder) built(r recipe) Built {
	return Built{Program: r.program, Version: r.version, Path: r.path(b.cache)}
}

// recipes returns them in the order of the table, whatever the order of names.
func (b *Builder) recipes(names []string) ([]recipe, error) {
	for _, name := range names {
		if _, err := Find(name); err != nil {
			return nil, err
		}
	}
	var recipes []recipe
	for _, p := range All() {
		if !slices.Contains(names, p.Name) {
			continue
		}
		r, err := newRecipe(b.root, p)
		if err != nil {
			return nil, err
		}
		recipes = append(recipes, r)
	}
	return recipes, nil
}

func (b *Builder) missing(r recipe) bool { return !exists(r.path(b.cache)) }

func (b *Builder) buildMissing(ctx context.Context, recipes []recipe) error {
	unlock, err := lock(ctx, filepath.Join(b.cache, "build.lock"), func() {
		fmt.Fprintln(b.progress, "waiting for another process that builds lab programs")
	})
	if err != nil {
		return err
	}
	defer unlock()
	if err := b.removeUnfinished(); err != nil {
		return err
	}
	for _, batch := range batches(slices.DeleteFunc(slices.Clone(recipes), func(r recipe) bool { return !b.missing(r) })) {
		if err := b.buildBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// batches groups neighbours of the same module. It only groups neighbours, to keep the order
// of the table, which is the order of need. Two programs of one name, such as the two Helms,
// are not built into one directory.
func batches(recipes []recipe) [][]recipe {
	var list [][]recipe
	for _, r := range recipes {
		last := len(list) - 1
		if last >= 0 && list[last][0].dir == r.dir && !slices.ContainsFunc(list[last], r.isNamesake) {
			list[last] = append(list[last], r)
			continue
		}
		list = append(list, []recipe{r})
	}
	return list
}

func (r recipe) isNamesake(other recipe) bool {
	return executable(r.program.Package) == executable(other.program.Package)
}

// unfinished begins the name of a directory with a build in progress.
const unfinished = "building-"

// removeUnfinished removes the leftovers of builders that were killed. Only the holder of
// the lock builds.
func (b *Builder) removeUnfinished() error {
	dirs, err := filepath.Glob(filepath.Join(b.cache, unfinished+"*"))
	if err != nil {
		return fmt.Errorf("find unfinished builds: %w", err)
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove an unfinished build: %w", err)
		}
	}
	return nil
}

func (b *Builder) buildBatch(ctx context.Context, batch []recipe) error {
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return fmt.Errorf("make the cache for lab programs: %w", err)
	}
	scratch, err := os.MkdirTemp(b.cache, unfinished)
	if err != nil {
		return fmt.Errorf("make a directory to build in: %w", err)
	}
	defer os.RemoveAll(scratch)

	report := startReport(b.progress, batch)
	defer report.stop()
	if err := goBuild(ctx, batch, scratch, report); err != nil {
		return err
	}
	for _, r := range batch {
		if err := b.keep(ctx, r, filepath.Join(scratch, executable(r.program.Package))); err != nil {
			return err
		}
	}
	report.built()
	return nil
}

// keep moves a finished program to its place: last, and by a rename, so other processes
// never see an incomplete program or one without its assets.
func (b *Builder) keep(ctx context.Context, r recipe, file string) error {
	path := r.path(b.cache)
	if err := keepAssets(ctx, r, filepath.Dir(path)); err != nil {
		return fmt.Errorf("keep the assets of %s: %w", r.program.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep %s: %w", r.program.Name, err)
	}
	if err := os.Rename(file, path); err != nil {
		return fmt.Errorf("keep %s: %w", r.program.Name, err)
	}
	return nil
}

func goBuild(ctx context.Context, batch []recipe, out string, report *report) error {
	args := slices.Concat([]string{"build", "-v", "-o", out + string(filepath.Separator)}, batch[0].flags)
	for _, r := range batch {
		args = append(args, r.program.Package)
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("build %s: %w", describe(batch), err)
	}
	p, err := process.Start(process.Spec{
		Path: goTool, Args: args, Dir: batch[0].dir,
		Env:    goEnv(),
		Stderr: report,
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("build %s: %w", describe(batch), context.Cause(ctx)), p.Kill())
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("build %s (go build in %s): %w\n%s", describe(batch), batch[0].dir, err, report.tail())
	}
	return nil
}

// goEnv makes the result independent of the user's own settings.
func goEnv() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
}

// executable is the name that go build uses for a main package's program: the last element
// of its path that isn't a major version.
func executable(pkg string) string {
	elements := strings.Split(pkg, "/")
	last := elements[len(elements)-1]
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = elements[len(elements)-2]
	}
	return last
}

func describe(batch []recipe) string { return Describe(described(batch)) }

func described(batch []recipe) []Built {
	var list []Built
	for _, r := range batch {
		list = append(list, Built{Program: r.program, Version: r.version})
	}
	return list
}
