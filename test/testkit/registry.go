package testkit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// Registry is a real registry that everyone may read, without TLS.
type Registry struct{ *registrylab.Server }

// StartRegistry starts one for a test.
func StartRegistry(t testing.TB) *Registry {
	t.Helper()
	return &Registry{Server: ServeRegistry(t, registrylab.Options{Plain: true, Public: true})}
}

// ServeRegistry starts a registry with options, in a directory of the test, and ends it with the
// test. Without options it uses TLS and requires credentials.
func ServeRegistry(t testing.TB, o registrylab.Options) *registrylab.Server {
	t.Helper()
	o.Dir, o.Progress = t.TempDir(), os.Stderr
	server, err := registrylab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Authority writes a registry's certificate into a file, for --registry-ca.
func Authority(t testing.TB, server *registrylab.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Flags make a controller follow images of the registry and query it every second.
func (r *Registry) Flags() []string {
	return []string{
		"--images", "--image-interval", "1s", "--cloud-identity=false",
		"--image-platforms", "linux/amd64", "--plain-http-registry", r.Address,
	}
}

// Push pushes an image whose content is its tag, and returns its reference by digest.
func (r *Registry) Push(t testing.TB, repository, tag string) string {
	t.Helper()
	digest, err := r.PushIndex(t.Context(), repository, tag, tag)
	if err != nil {
		t.Fatal(err)
	}
	return r.Address + "/" + repository + ":" + tag + "@" + digest
}

// CreateImageUser creates a Deployment whose container requests an image of the registry,
// such as "app:1.*", and runs the repository without a tag.
func (w *World) CreateImageUser(t testing.TB, name string, registry *Registry, repository, tags string) {
	t.Helper()
	d := Deployment(name, "", "")
	d.Annotations[settings.ImagePrefix+"app"] = registry.Address + "/" + repository + ":" + tags
	d.Spec.Template.Spec.Containers[0].Image = registry.Address + "/" + repository
	w.Create(t, d)
}
