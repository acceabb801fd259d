package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/release/bundle"
	"github.com/lockstep-dev/lockstep/release/images"
	"github.com/lockstep-dev/lockstep/release/tinysource"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

func TestMain(m *testing.M) { os.Exit(labtest.RunTests(m)) }

const changelog = `# Changelog

## [Unreleased]

## [1.2.3] - 2023-11-14

### Added

- A first version.

[1.2.3]: https://example.test/v1.2.3
`

// newBundle is a release of a stand-in for the checkout, in a directory that does not exist yet.
func newBundle(t *testing.T) bundle.Bundle {
	t.Helper()
	source := tinysource.New(t)
	for name, content := range map[string]string{
		"LICENSE": "a licence\n", "README.md": "# Tiny\n", "CHANGELOG.md": changelog,
		"charts/app/Chart.yaml":          "apiVersion: v2\nname: app\nversion: 0.0.1\n",
		"charts/app/templates/note.yaml": "# nothing\n",
	} {
		tinysource.Write(t, filepath.Join(source.Root, name), content)
	}
	h := helmtest.New(t, "")
	if err := os.CopyFS(filepath.Join(source.Root, "charts", "lockstep"), os.DirFS(h.Chart("lockstep"))); err != nil {
		t.Fatal(err)
	}
	return bundle.Bundle{
		Source: source, Dir: filepath.Join(t.TempDir(), "dist", source.Version), Helm: h.Path(), Progress: images.Silent{},
	}
}

// TestMake makes a release and looks into every file.
func TestMake(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	names, err := b.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"app-1.2.3.tgz", "lockstep-1.2.3.tgz", "lockstep-images_v1.2.3.tar", "lockstep.yaml",
		"lockstep_v1.2.3_darwin_amd64.tar.gz", "lockstep_v1.2.3_darwin_arm64.tar.gz",
		"lockstep_v1.2.3_linux_amd64.tar.gz", "lockstep_v1.2.3_linux_arm64.tar.gz",
		"release-notes.md", "SHA256SUMS",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	checkPage(t, names)
	checkSums(t, b.Dir, names)
	for name := range files(t, filepath.Join(b.Dir, "lockstep-1.2.3.tgz")) {
		if strings.HasSuffix(name, ".in") {
			t.Errorf("the chart has %s, which its README is made from", name)
		}
	}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		checkPrograms(t, platform, files(t, filepath.Join(b.Dir, "lockstep_v1.2.3_"+platform+".tar.gz")))
	}
	if got := string(read(t, filepath.Join(b.Dir, "release-notes.md"))); got != "### Added\n\n- A first version.\n" {
		t.Errorf("the release notes are %q", got)
	}
	checkManifest(t, string(read(t, filepath.Join(b.Dir, "lockstep.yaml"))))
	checkLayout(t, files(t, filepath.Join(b.Dir, "lockstep-images_v1.2.3.tar")))
	shown := helmtest.New(t, "").Run(t, "show", "chart", filepath.Join(b.Dir, "app-1.2.3.tgz"))
	if !strings.Contains(shown, "version: 1.2.3\n") || !strings.Contains(shown, "appVersion: v1.2.3\n") {
		t.Errorf("Helm shows of the chart\n%s", shown)
	}
	left, err := os.ReadDir(filepath.Dir(b.Dir))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the release are %v, error %v", left, err)
	}
	t.Run("same commit, same bytes", func(t *testing.T) { madeAgain(t, string(read(t, filepath.Join(b.Dir, "SHA256SUMS")))) })
}

// madeAgain: making the release again in another directory, at another time, replacing an older
// release, gives the same checksums.
func madeAgain(t *testing.T, sums string) {
	t.Helper()
	other := newBundle(t)
	long := time.Unix(1600000000, 0)
	err := filepath.WalkDir(other.Root, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, long, long))
	})
	if err != nil {
		t.Fatal(err)
	}
	tinysource.Write(t, filepath.Join(other.Dir, "SHA256SUMS"), "")
	tinysource.Write(t, filepath.Join(other.Dir, "leftover"), "")
	names, err := other.Make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, other.Dir, names)
	if diff := cmp.Diff(sums, string(read(t, filepath.Join(other.Dir, "SHA256SUMS")))); diff != "" {
		t.Errorf("checksums differ:\n%s", diff)
	}
}

// TestMakeRefuses: a mistake costs one line, and no time.
func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version, file string
		want          string
	}{
		"no version":         {version: "90adcec", want: "want a v and a semantic version"},
		"without v":          {version: "1.2.3", want: "want a v and a semantic version"},
		"two numbers":        {version: "v1.2", want: "want a v and a semantic version"},
		"build metadata":     {version: "v1.2.3+linux", want: "want a v and a semantic version"},
		"not in the log":     {version: "v1.2.4", want: "CHANGELOG.md has no section for v1.2.4"},
		"directory of yours": {version: "v1.2.3", file: "notes.txt", want: "name a new or an empty directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bundle.Bundle{Source: images.Source{Root: t.TempDir(), Version: c.version}, Dir: t.TempDir(), Progress: images.Silent{}}
			tinysource.Write(t, filepath.Join(b.Root, "CHANGELOG.md"), changelog)
			if c.file != "" {
				tinysource.Write(t, filepath.Join(b.Dir, c.file), "mine")
			}
			_, err := b.Make(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(b.Dir, c.file)); err != nil {
				t.Error(err)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// checkPage: the page about releases lists the files, as "make release" prints them.
func checkPage(t *testing.T, names []string) {
	t.Helper()
	page := string(read(t, filepath.Join("..", "..", "docs", "contributing", "releases.md")))
	var listed []string
	for _, match := range regexp.MustCompile(`(?m)^ *dist/v0\.1\.0/(\S+)$`).FindAllStringSubmatch(page, -1) {
		listed = append(listed, strings.ReplaceAll(match[1], "0.1.0", "1.2.3"))
	}
	if diff := cmp.Diff(names, listed); diff != "" {
		t.Errorf("docs/contributing/releases.md lists other files (-made +listed):\n%s", diff)
	}
}

// checkManifest: the plain installation is the real chart's, and everything in it is of this release.
func checkManifest(t *testing.T, text string) {
	t.Helper()
	objects := helmtest.Objects(t, text)
	for _, o := range objects {
		if version := o.GetLabels()["app.kubernetes.io/version"]; version != "v1.2.3" && o.GetKind() != "Namespace" {
			t.Errorf("%s %s has the version %q", o.GetKind(), o.GetName(), version)
		}
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "ClusterRole", "Deployment"} {
		if len(helmtest.OfKind(objects, kind)) != 1 {
			t.Errorf("the manifest does not have one %s", kind)
		}
	}
	if !strings.Contains(text, `image: "registry.example/lockstep:v1.2.3"`) {
		t.Error("the image has another tag")
	}
	for _, of := range []string{"helm.sh", "kustomization", "go generate", ":dev"} {
		if strings.Contains(text, of) {
			t.Errorf("the manifest names %s, which its reader does not have", of)
		}
	}
}

// checkSums compares every file but the last, which has the sums, in the form of sha256sum.
func checkSums(t *testing.T, dir string, names []string) {
	t.Helper()
	var want strings.Builder
	for _, name := range names[:len(names)-1] {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(read(t, filepath.Join(dir, name))), name)
	}
	if diff := cmp.Diff(want.String(), string(read(t, filepath.Join(dir, "SHA256SUMS")))); diff != "" {
		t.Errorf("checksums (-want +got):\n%s", diff)
	}
}

// files are the contents of an archive by their names.
func files(t *testing.T, path string) map[string][]byte {
	t.Helper()
	var content io.Reader = bytes.NewReader(read(t, path))
	if strings.HasSuffix(path, "gz") {
		unpacked, err := gzip.NewReader(content)
		if err != nil {
			t.Fatal(err)
		}
		content = unpacked
	}
	all := map[string][]byte{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		isProgram := strings.HasPrefix(header.Name, "lockstep") && !strings.Contains(header.Name, "/")
		if header.ModTime.Unix() != 1700000000 || header.Uid != 0 || (header.Mode == 0o755) != isProgram {
			t.Errorf("%s in %s has time %s, owner %d, mode %o", header.Name, filepath.Base(path), header.ModTime, header.Uid, header.Mode)
		}
		if all[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPrograms: the archive of a platform has its programs, for that platform.
func checkPrograms(t *testing.T, platform string, content map[string][]byte) {
	t.Helper()
	want := []string{"LICENSE", "README.md", "lockstep"}
	if strings.HasPrefix(platform, "linux") {
		want = append(want, "lockstep-sync")
	}
	var names []string
	for name, program := range content {
		names = append(names, name)
		if strings.HasPrefix(name, "lockstep") && machine(t, program) != platform {
			t.Errorf("%s of %s is for %s", name, platform, machine(t, program))
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files of %s (-want +got):\n%s", platform, diff)
	}
}

// machine says what a program is for.
func machine(t *testing.T, program []byte) string {
	t.Helper()
	if file, err := elf.NewFile(bytes.NewReader(program)); err == nil {
		return map[elf.Machine]string{elf.EM_X86_64: "linux_amd64", elf.EM_AARCH64: "linux_arm64"}[file.Machine]
	}
	file, err := macho.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	return map[macho.Cpu]string{macho.CpuAmd64: "darwin_amd64", macho.CpuArm64: "darwin_arm64"}[file.Cpu]
}

// checkLayout unpacks the images and reads them.
func checkLayout(t *testing.T, content map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		tinysource.Write(t, filepath.Join(dir, name), string(text))
	}
	built, err := images.ReadLayout(dir)
	if err != nil || len(built) != len(images.Table()) {
		t.Errorf("%d images, error %v", len(built), err)
	}
}
