// Package helmtest runs the real Helm program on the charts of this repository.
package helmtest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// Helm is the program, with a home of its own.
type Helm struct {
	path string
	root string
	env  []string
}

// New returns Helm, which is built when it is missing. An empty kubeconfig is for
// commands that need no cluster.
func New(t testing.TB, kubeconfig string) *Helm {
	t.Helper()
	return newHelm(t, program.Helm, kubeconfig)
}

// New3 returns the last Helm of version 3, which only renders.
func New3(t testing.TB) *Helm {
	t.Helper()
	return newHelm(t, program.Helm3, "")
}

func newHelm(t testing.TB, name, kubeconfig string) *Helm {
	t.Helper()
	path := labtest.Program(t, name)
	root, err := program.Root()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return &Helm{path: path, root: root, env: []string{
		"KUBECONFIG=" + kubeconfig,
		"HELM_CACHE_HOME=" + filepath.Join(home, "cache"),
		"HELM_CONFIG_HOME=" + filepath.Join(home, "config"),
		"HELM_DATA_HOME=" + filepath.Join(home, "data"),
	}}
}

// Chart is the path of a chart of this repository.
func (h *Helm) Chart(name string) string {
	return filepath.Join(h.root, "charts", name)
}

// Path is that of the program.
func (h *Helm) Path() string { return h.path }

// Root is the directory of the repository.
func (h *Helm) Root() string { return h.root }

// Run runs a command that must succeed and returns what it wrote.
func (h *Helm) Run(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, code := h.Try(t, args...)
	if code != 0 {
		t.Fatalf("helm %s: exit %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// Try runs a command that may fail. It may take long: Helm waits for its hooks, at most five
// minutes.
func (h *Helm) Try(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	running := labtest.StartCommand(t, labtest.Command{Path: h.path, Args: args, Env: h.env})
	code = running.ExitCode(t, 6*time.Minute)
	return running.Stdout(), running.Stderr(), code
}

// ValuesFile writes values into a file and returns its path.
func ValuesFile(t testing.TB, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Objects reads rendered manifests.
func Objects(t testing.TB, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("read the rendered manifests: %v\n%s", err, manifests)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// OfKind returns the objects of one kind.
func OfKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}
