package images

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Source describes the checkout that a release is made from.
type Source struct {
	// Root is the directory of the checkout.
	Root string
	// Version is the version that the programs report, and the tag of the images.
	Version string
	// Revision is the commit; empty when it is not known.
	Revision string
	// Created is the time of the commit: with the time of the build, every build would result in
	// another image.
	Created time.Time
	// Platforms are the platforms of the images; none means all of [Platforms].
	Platforms []v1.Platform
}

func (s Source) platforms() []v1.Platform {
	if len(s.Platforms) == 0 {
		return Platforms()
	}
	return s.Platforms
}

// Compiled are the paths of the programs of one platform, by their names.
type Compiled map[string]string

// Compile builds programs for a platform into a directory.
func (s Source) Compile(ctx context.Context, platform v1.Platform, programs []string, dir string, progress Progress) (Compiled, error) {
	step := progress.Begin("compile for " + platform.String())
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=" + s.Version, "-o", dir + string(filepath.Separator)}
	paths := Compiled{}
	for _, name := range programs {
		args = append(args, "./cmd/"+name)
		paths[name] = filepath.Join(dir, name)
	}
	build := s.command(ctx, args...)
	build.Env = buildEnvironment(os.Environ(), platform)
	said := &packages{step: step}
	build.Stderr = said
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("compile for %s: %w: %s", platform, err, said.tail())
	}
	step.End("compiled for " + platform.String())
	return paths, nil
}

func (s Source) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.Root
	return command
}

// moduleVersion is the version of a module of the checkout.
func (s Source) moduleVersion(ctx context.Context, module string) (string, error) {
	list := s.command(ctx, "list", "-m", "-f", "{{.Version}}", module)
	list.Env = buildEnvironment(os.Environ(), Platforms()[0])
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildEnvironment sets every variable that changes the compiler's output. GOENV=off ignores
// "go env -w" settings of this machine.
func buildEnvironment(environment []string, platform v1.Platform) []string {
	fixed := []string{
		"CGO_ENABLED=0", "GOOS=" + platform.OS, "GOARCH=" + platform.Architecture,
		"GOENV=off", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOFIPS140=off",
	}
	ours := append(slices.Clone(fixed), "GOEXPERIMENT=")
	kept := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(ours, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
	return append(kept, fixed...)
}

// packages counts the packages that go build -v names, and keeps its other output.
type packages struct {
	step  Step
	count int
	other bytes.Buffer
}

func (p *packages) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
			p.step.Update("downloads " + strings.TrimSpace(strings.TrimPrefix(string(line), "go: downloading ")))
		case bytes.ContainsAny(line, " \t:"):
			p.other.Write(line)
		default:
			p.count++
			p.step.Update(fmt.Sprintf("%d packages", p.count))
		}
	}
	return len(text), nil
}

// tail is the end of the compiler's output, in one line.
func (p *packages) tail() string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(p.other.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}
