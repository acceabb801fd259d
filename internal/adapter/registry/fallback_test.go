package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

// plainRegistry has one tag, and no TLS.
func plainRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("1", 64))
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestLocalRegistryWithoutTLS: only a registry that is called local is asked in plain
// HTTP, and only if it does not speak TLS.
func TestLocalRegistryWithoutTLS(t *testing.T) {
	t.Parallel()
	address := plainRegistry(t)
	for name, local := range map[string]bool{"local": true, "elsewhere": false} {
		r := registry.NewClient(registry.Options{Local: func(host string) bool { return local && host == address }})
		found, err := resolve(t.Context(), r, ask(t, nil, "%s/app:1", address))
		if (err == nil) != local || local && found.Digest != "sha256:"+strings.Repeat("1", 64) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	var plain atomic.Int32
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain.Add(1) }))
	t.Cleanup(secure.Close)
	r := registry.NewClient(registry.Options{Local: func(string) bool { return true }})
	_, err := resolve(t.Context(), r, ask(t, nil, "%s/app:1", secure.Listener.Addr()))
	if err == nil || !strings.Contains(err.Error(), "certificate") || plain.Load() > 0 {
		t.Errorf("a certificate that is not trusted: %v, %d requests", err, plain.Load())
	}
}
