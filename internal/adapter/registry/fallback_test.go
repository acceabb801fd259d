package registry_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// oneTag answers as a registry with one tag, and counts the requests.
func oneTag(requests *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("1", 64))
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
	})
}

// plainRegistry has one tag, and no TLS.
func plainRegistry(t *testing.T) (address string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	server := httptest.NewServer(oneTag(requests))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), requests
}

// secureRegistry has one tag, and TLS with a certificate of its own.
func secureRegistry(t *testing.T) (address string, ca []byte) {
	t.Helper()
	server := httptest.NewTLSServer(oneTag(&atomic.Int32{}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// local is a client for which every registry is local.
func local(hosts map[string]registry.Host) *registry.Client {
	return registry.NewClient(registry.Options{Hosts: hosts, Local: func(string) bool { return true }})
}

// TestLocalRegistryWithoutTLS: only a registry that is called local is asked in plain
// HTTP, and only if it does not speak TLS.
func TestLocalRegistryWithoutTLS(t *testing.T) {
	t.Parallel()
	address, _ := plainRegistry(t)
	for name, isLocal := range map[string]bool{"local": true, "elsewhere": false} {
		r := registry.NewClient(registry.Options{Local: func(host string) bool { return isLocal && host == address }})
		found, err := resolve(t.Context(), r, ask(t, nil, "%s/app:1", address))
		if (err == nil) != isLocal || isLocal && found.Digest != "sha256:"+strings.Repeat("1", 64) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

// TestWhatIsNotTLS: whatever a local registry does with a connection that begins with TLS, it is
// asked in plain HTTP if that works there.
func TestWhatIsNotTLS(t *testing.T) {
	t.Parallel()
	plain, _ := plainRegistry(t)
	for name, answer := range map[string]string{
		"closes": "", "HTTP": "HTTP/1.1 400 Bad Request\r\n\r\n", "words": "220 lab ESMTP\r\n", "alert": "\x15\x03\x01\x00\x02\x02\x28",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			door := testkit.NewDoor(t, testkit.Way{Answer: answer}, testkit.Way{To: plain})
			if found, err := resolve(t.Context(), local(nil), ask(t, nil, "%s/app:1", door.Address)); err != nil || found.Digest == "" {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// TestOnlyPort80: without a port in its name, a local registry without TLS listens on another port.
func TestOnlyPort80(t *testing.T) {
	t.Parallel()
	plain, _ := plainRegistry(t)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "registry.local:80" {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, plain)
	}
	r := registry.NewClient(registry.Options{Local: func(string) bool { return true }, Transport: &http.Transport{DialContext: dial}})
	if found, err := resolve(t.Context(), r, ask(t, nil, "registry.local/app:1")); err != nil || found.Digest == "" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestNoPlainHTTPWhereTLSIs: a certificate that isn't trusted, a server that refuses plain HTTP,
// and a registry that has answered over TLS before.
func TestNoPlainHTTPWhereTLSIs(t *testing.T) {
	t.Parallel()
	plain, requests := plainRegistry(t)
	secure, ca := secureRegistry(t)
	door := testkit.NewDoor(t, testkit.Way{To: secure}, testkit.Way{To: plain})
	question := ask(t, nil, "%s/app:1", door.Address)
	if _, err := resolve(t.Context(), local(nil), question); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that is not trusted: %v", err)
	}
	trusted := local(map[string]registry.Host{door.Address: {CA: ca}})
	if _, err := resolve(t.Context(), trusted, question); err != nil {
		t.Fatal(err)
	}
	door.Lead(testkit.Way{}, testkit.Way{To: plain})
	if _, err := resolve(t.Context(), trusted, question); err == nil {
		t.Error("after TLS the registry is asked in plain HTTP")
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("%d requests in plain HTTP", n)
	}
	door.Lead(testkit.Way{}, testkit.Way{Answer: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"})
	if _, err := resolve(t.Context(), local(nil), question); err == nil || !strings.Contains(err.Error(), "no answer from "+door.Address) {
		t.Errorf("a server that refuses both: %v", err)
	}
}

// TestPlainRegistryGetsTLS: it is asked over TLS from then on, after one answer that tells so.
func TestPlainRegistryGetsTLS(t *testing.T) {
	t.Parallel()
	plain, _ := plainRegistry(t)
	secure, ca := secureRegistry(t)
	door := testkit.NewDoor(t, testkit.Way{}, testkit.Way{To: plain})
	question := ask(t, nil, "%s/app:1", door.Address)
	r := local(map[string]registry.Host{door.Address: {CA: ca}})
	if _, err := resolve(t.Context(), r, question); err != nil {
		t.Fatal(err)
	}
	door.Lead(testkit.Way{To: secure}, testkit.Way{Answer: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"})
	if _, err := resolve(t.Context(), r, question); err == nil {
		t.Error("the answer 400 is taken for a digest")
	}
	if _, err := resolve(t.Context(), r, question); err != nil {
		t.Errorf("over TLS: %v", err)
	}
}

// TestACertificateRulesOutPlainHTTP: also when the connection is cut after the handshake.
func TestACertificateRulesOutPlainHTTP(t *testing.T) {
	t.Parallel()
	plain, requests := plainRegistry(t)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(secure.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	door := testkit.NewDoor(t, testkit.Way{To: secure.Listener.Addr().String()}, testkit.Way{To: plain})
	r := local(map[string]registry.Host{door.Address: {CA: ca}})
	if _, err := resolve(t.Context(), r, ask(t, nil, "%s/app:1", door.Address)); err == nil || requests.Load() > 0 {
		t.Errorf("error %v, %d requests in plain HTTP", err, requests.Load())
	}
}

// TestPlainRegistryRedirects: one that is queried in plain HTTP may redirect to plain HTTP.
func TestPlainRegistryRedirects(t *testing.T) {
	t.Parallel()
	plain, _ := plainRegistry(t)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, "http://"+plain+r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(moved.Close)
	if found, err := resolve(t.Context(), local(nil), ask(t, nil, "%s/app:1", moved.Listener.Addr())); err != nil || found.Digest == "" {
		t.Errorf("%+v, %v", found, err)
	}
}
