package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/release/images"
	"github.com/lockstep-dev/lockstep/release/manifest"
)

// sums is the file with the checksums. It marks a directory as a release.
const sums = "SHA256SUMS"

// Bundle describes a release to make.
type Bundle struct {
	images.Source
	// Dir is where the files go; it is replaced.
	Dir string
	// Helm is the path of the program.
	Helm     string
	Progress images.Progress
}

// target is a platform and the programs that exist for it.
type target struct {
	v1.Platform
	programs []string
}

// targets lists the platforms: those of the images, with both programs, and macOS, for the
// command line.
func targets() []target {
	var all []target
	for _, platform := range images.Platforms() {
		all = append(all, target{platform, images.Programs()})
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		all = append(all, target{v1.Platform{OS: "darwin", Architecture: architecture}, []string{images.Controller}})
	}
	return all
}

// Check refuses invalid options before anything is compiled.
func (b Bundle) Check() error {
	if _, err := number(b.Version); err != nil {
		return err
	}
	if _, err := b.notes(); err != nil {
		return err
	}
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("OUT=%s: want a directory, which is replaced: %w", b.Dir, err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == sums }) {
		return fmt.Errorf("OUT=%s: the directory has other files in it, and making a release would remove them: name a new or an empty directory", b.Dir)
	}
	return nil
}

func (b Bundle) notes() (string, error) {
	changelog, err := os.ReadFile(filepath.Join(b.Root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	return Notes(string(changelog), b.Version)
}

// Make makes all files, and replaces the old directory when the new one is complete. It
// returns their names.
func (b Bundle) Make(ctx context.Context) ([]string, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(b.Dir), 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(filepath.Dir(b.Dir), ".release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	fresh := filepath.Join(work, "files")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return nil, err
	}
	for _, step := range []func(ctx context.Context, work, to string) error{b.programs, b.charts, b.manifest, b.releaseNotes} {
		if err := step(ctx, work, fresh); err != nil {
			return nil, err
		}
	}
	names, err := writeSums(fresh)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		return nil, err
	}
	return names, os.Rename(fresh, b.Dir)
}

// programs compiles each program once for each platform, and packs it both into an archive
// and, for Linux, into the images.
func (b Bundle) programs(ctx context.Context, work, to string) error {
	var forImages []images.Compiled
	for _, t := range targets() {
		dir := filepath.Join(work, t.OS+"_"+t.Architecture)
		paths, err := b.Compile(ctx, t.Platform, t.programs, dir, b.Progress)
		if err != nil {
			return err
		}
		archive := fmt.Sprintf("%s_%s_%s_%s.tar.gz", images.Controller, b.Version, t.OS, t.Architecture)
		if err := writeArchive(filepath.Join(to, archive), b.entries(t, paths), b.Created); err != nil {
			return err
		}
		if slices.ContainsFunc(images.Platforms(), t.Equals) {
			forImages = append(forImages, paths)
		}
	}
	built, err := b.Pack(ctx, forImages, b.Progress)
	if err != nil {
		return err
	}
	layout := filepath.Join(work, "images")
	if err := images.WriteLayout(layout, built); err != nil {
		return err
	}
	return writeDir(filepath.Join(to, fmt.Sprintf("%s-images_%s.tar", images.Controller, b.Version)), layout, b.Created)
}

// entries are the files of an archive of programs.
func (b Bundle) entries(t target, paths images.Compiled) []entry {
	var all []entry
	for _, name := range t.programs {
		all = append(all, entry{name: name, path: paths[name], mode: 0o755})
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		all = append(all, entry{name: name, path: filepath.Join(b.Root, name), mode: 0o644})
	}
	return all
}

// charts packages every chart with Helm, with the version of the release.
func (b Bundle) charts(ctx context.Context, work, to string) error {
	version, err := number(b.Version)
	if err != nil {
		return err
	}
	charts, err := filepath.Glob(filepath.Join(b.Root, "charts", "*", "Chart.yaml"))
	if err != nil {
		return err
	}
	if len(charts) == 0 {
		return errors.New("there are no charts")
	}
	for _, chart := range charts {
		dir := filepath.Dir(chart)
		step := b.Progress.Begin("package the chart " + filepath.Base(dir))
		helm := exec.CommandContext(ctx, b.Helm, "package", dir, "--version", version, "--app-version", b.Version, "--destination", work)
		if out, err := helm.CombinedOutput(); err != nil {
			return fmt.Errorf("package the chart %s: %w: %s", filepath.Base(dir), err, strings.TrimSpace(string(out)))
		}
		name := fmt.Sprintf("%s-%s.tgz", filepath.Base(dir), version)
		if err := rewriteTimes(filepath.Join(work, name), filepath.Join(to, name), b.Created); err != nil {
			return fmt.Errorf("package the chart %s: %w", filepath.Base(dir), err)
		}
		step.End("packaged " + name)
	}
	return nil
}

// manifest is the plain installation: the rendered chart of the release. The user has to set
// its registry, because no image is published.
func (b Bundle) manifest(ctx context.Context, _, to string) error {
	version, err := number(b.Version)
	if err != nil {
		return err
	}
	text, err := manifest.Source{
		Helm: b.Helm, Chart: filepath.Join(to, images.Controller+"-"+version+".tgz"),
		Heading: fmt.Sprintf("# Lockstep %s for a whole cluster, as its chart renders it by default. Put your registry into \"image:\",\n# then run \"kubectl apply -f lockstep.yaml\".\n", b.Version),
	}.Render(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "lockstep.yaml"), text, 0o644)
}

func (b Bundle) releaseNotes(_ context.Context, _, to string) error {
	text, err := b.notes()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "release-notes.md"), []byte(text), 0o644)
}

// writeSums writes the checksums of all files of a directory, in the form that sha256sum
// checks, and returns the names of all files, its own included.
func writeSums(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	var text strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), e.Name())
		names = append(names, e.Name())
	}
	return append(names, sums), os.WriteFile(filepath.Join(dir, sums), []byte(text.String()), 0o644)
}
