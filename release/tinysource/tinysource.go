// Package tinysource creates a small replacement for the checkout, for the release tests:
// its programs compile in a moment, and the tests' results hold for the real ones too.
package tinysource

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
	"github.com/lockstep-dev/lockstep/release/images"
)

// RootsModule contains the certificate roots of the images.
const RootsModule = "golang.org/x/crypto/x509roots/fallback"

// New creates a checkout in a temporary directory.
func New(t testing.TB) images.Source {
	t.Helper()
	root := t.TempDir()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", RootsModule)
	version, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"go.mod": "module example.test/tiny\n\ngo 1.26.0\n\nrequire " + RootsModule + " " + strings.TrimSpace(string(version)) + " // indirect\n",
		"go.sum": string(sums),
	}
	for _, name := range images.Programs() {
		files["cmd/"+name+"/main.go"] = "package main\n\nvar version string\n\nfunc main() { println(\"" + name + "\", version) }\n"
	}
	for name, content := range files {
		Write(t, filepath.Join(root, name), content)
	}
	return images.Source{Root: root, Version: "v1.2.3", Revision: "0123456789abcdef", Created: time.Unix(1700000000, 0)}
}

// Write writes a file and the directories above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
