package images_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/lockstep-dev/lockstep/release/images"
	"github.com/lockstep-dev/lockstep/release/tinysource"
)

// The directory of the checkout, the directory of the build, the time of the build and the
// user's settings of the go command are not in an image.
func TestSameSourceSameDigests(t *testing.T) {
	one, other := tinysource.New(t), tinysource.New(t)
	first := digests(t, build(t, one))
	t.Setenv("GOFLAGS", "-tags=something")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	settings := filepath.Join(t.TempDir(), "env")
	tinysource.Write(t, settings, "GOEXPERIMENT=nogreenteagc\nGOAMD64=v4\n") // as "go env -w" does
	t.Setenv("GOENV", settings)
	if diff := cmp.Diff(first, digests(t, build(t, other))); diff != "" {
		t.Errorf("the same source in another directory gives other images:\n%s", diff)
	}
	other.Version = "v1.2.4"
	for i, digest := range digests(t, build(t, other)) {
		if digest == first[i] {
			t.Errorf("another version is the same image: %s", digest)
		}
	}
}

// A layout gives back what was written, and replaces what was there before.
func TestLayout(t *testing.T) {
	t.Parallel()
	built, _ := smallImages(t)
	dir := filepath.Join(t.TempDir(), "dist", "images")
	tinysource.Write(t, filepath.Join(dir, "oci-layout"), "{}")
	tinysource.Write(t, filepath.Join(dir, "blobs", "sha256", "leftover"), "x")
	if err := images.WriteLayout(dir, built); err != nil {
		t.Fatal(err)
	}
	read, err := images.ReadLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(digests(t, built), digests(t, read)); diff != "" {
		t.Errorf("what is read differs from what was written:\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "blobs", "sha256", "leftover")); err == nil {
		t.Error("a file of the old layout is still there")
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the layout are %v, error %v", entries, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the layout has the mode %s, error %v, want one that others can read", info.Mode(), err)
	}
}

// A directory is replaced only when nothing is lost with it but an old layout.
func TestLayoutReplacesNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   []string
		refused bool
	}{
		"new":           {},
		"empty":         {files: []string{"images/"}},
		"a layout":      {files: []string{"images/oci-layout", "images/index.json"}},
		"a home":        {files: []string{"images/.profile", "images/notes/today"}, refused: true},
		"parent of one": {files: []string{"images/dist/oci-layout"}, refused: true},
		"a file":        {files: []string{"images"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, file := range c.files {
				if dir, ok := strings.CutSuffix(file, "/"); ok {
					if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				tinysource.Write(t, filepath.Join(root, file), "mine")
			}
			err := images.WriteLayout(filepath.Join(root, "images"), nil)
			if refused := err != nil && strings.HasPrefix(err.Error(), "OUT="); refused != c.refused || err != nil && !refused {
				t.Fatalf("error %v, want a refusal that names OUT: %t", err, c.refused)
			}
			for _, file := range c.files {
				if content, err := os.ReadFile(filepath.Join(root, file)); c.refused && string(content) != "mine" {
					t.Errorf("%s is gone: %v", file, err)
				}
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for image, reason := range map[string]string{
		"":                                  "nothing",
		"lockstep":                          "no registry",
		"team/lockstep":                     "no registry, as Docker would guess one",
		"registry.example/team/lockstep:v1": "the tag is the version",
		"registry.example/Team/lockstep":    "capital letters",
		"https://registry.example/lockstep": "a URL",
		"registry.example/team/":            "no name of an image",
	} {
		if _, err := images.ParseTarget(image, "v1"); err == nil || !strings.HasPrefix(err.Error(), "IMAGE") {
			t.Errorf("IMAGE=%q (%s): error %v, want one that names IMAGE", image, reason, err)
		}
	}
	if _, err := images.ParseTarget("registry.example/Team/lockstep", "v1"); err == nil || !strings.HasSuffix(err.Error(), "in lower case, without https://") {
		t.Errorf("error %v, want how it is written", err)
	}
	for _, version := range []string{"", "v1+x", "a b"} {
		if _, err := images.ParseTarget("registry.example/lockstep", version); err == nil {
			t.Errorf("VERSION=%q is taken for a tag", version)
		}
	}
	target, err := images.ParseTarget("registry.example:5000/team/lockstep", "v1")
	if err != nil || target.Registry() != "registry.example:5000" {
		t.Errorf("registry %q, error %v", target.Registry(), err)
	}
}

// The controller finds time zones in its images, where Go looks for them. The agent contains them.
func TestTimeZones(t *testing.T) {
	t.Parallel()
	built, _ := smallImages(t)
	for _, b := range built {
		manifest, err := b.Index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range manifest.Manifests {
			image, err := b.Index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			zone := content(t, image, "usr/share/zoneinfo/Europe/Berlin")
			if _, err := time.LoadLocationFromTZData("Europe/Berlin", zone); (err == nil) != (b.Program == images.Controller) {
				t.Errorf("%s for %s: a time zone of %d bytes (%v)", b.Name, d.Platform, len(zone), err)
			}
		}
	}
}

// content is that of a file of an image, nil if there is none.
func content(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == name {
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}
