package images_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/release/images"
)

const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// tiny is a checkout with programs that take a moment to compile: what is said of them
// holds for the real ones, which one test makes.
func tiny(t *testing.T) images.Source {
	t.Helper()
	root := t.TempDir()
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", rootsModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"go.mod": "module example.test/tiny\n\ngo 1.26.0\n\nrequire " + rootsModule + " " + strings.TrimSpace(string(version)) + " // indirect\n",
		"go.sum": string(sums),
	}
	for _, name := range images.Programs() {
		files["cmd/"+name+"/main.go"] = "package main\n\nvar version string\n\nfunc main() { println(\"" + name + "\", version) }\n"
	}
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	return images.Source{Root: root, Version: "v1.2.3", Revision: "0123456789abcdef", Created: time.Unix(1700000000, 0)}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func build(t *testing.T, source images.Source) []images.Built {
	t.Helper()
	built, err := source.Build(t.Context(), images.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// digests are those of the images, in the order of the table, and of what is attached.
func digests(t *testing.T, built []images.Built) []string {
	t.Helper()
	var all []string
	for _, b := range built {
		digest, err := b.Index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Name+" "+digest.String())
		for _, attached := range b.SBOMs {
			digest, err := attached.Digest()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b.Name+" SBOM "+digest.String())
		}
	}
	return all
}
