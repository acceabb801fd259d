package registry_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
)

const somewhere = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(s[:])
}

// serve answers as a registry that no one would run: a real one does not lie.
func serve(t *testing.T, answer http.HandlerFunc) (address string, r *registry.Client) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	address = strings.TrimPrefix(s.URL, "http://")
	return address, registry.NewClient(registry.Options{Hosts: map[string]registry.Host{address: {PlainHTTP: true}}})
}

// TestLies: an answer that contradicts itself is refused.
func TestLies(t *testing.T) {
	t.Parallel()
	const index = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`
	for _, c := range []struct {
		reason, spec string
		answer       func(w http.ResponseWriter, r *http.Request, calls int)
		want         string
		most         int // requests
	}{
		{"a digest that is none", "1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Docker-Content-Digest", "sha256:../../etc")
		}, `answered with the digest "sha256:../../etc"`, 1},
		{"a digest of another kind", "1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Docker-Content-Digest", "md5:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
		}, `answered with the digest`, 1},
		{"another manifest than the digest", "1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Docker-Content-Digest", somewhere)
			fmt.Fprint(w, index)
		}, "sent a manifest with the digest " + sum(index), 2},
		{"no digest, and then a wrong one", "1", func(w http.ResponseWriter, r *http.Request, _ int) {
			if r.Method == http.MethodGet {
				w.Header().Set("Docker-Content-Digest", somewhere)
			}
			fmt.Fprint(w, index)
		}, "reports the digest", 2},
		{"what is no manifest", "1", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Docker-Content-Digest", sum(`{"schemaVersion":1}`))
			fmt.Fprint(w, `{"schemaVersion":1}`)
		}, "neither an image nor an image index", 2},
		{"a page that follows itself", "*", func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Link", `</v2/app/tags/list?last=9&n=1>; rel="next"`)
			fmt.Fprint(w, `{"tags":["9"]}`)
		}, "names itself as the next one", 2},
		{"a list that is none", "*", func(w http.ResponseWriter, _ *http.Request, _ int) {
			fmt.Fprint(w, `<html>`)
		}, "cannot be read", 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			calls := 0
			address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v2/" {
					calls++
					c.answer(w, r, calls)
				}
			})
			q := ask(t, nil, "%s/app:%s", address, c.spec)
			q.read = true
			got, err := resolve(t.Context(), r, q)
			if registry.KindOf(err) != registry.Untrue || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, error %v, want %q", got, err, c.want)
			}
			if calls > c.most {
				t.Errorf("%d requests, want at most %d", calls, c.most)
			}
		})
	}
}

// TestDigestIsComputed: not every registry says the digest of a manifest, or answers
// HEAD at all.
func TestDigestIsComputed(t *testing.T) {
	t.Parallel()
	const manifest = `{"schemaVersion":2}`
	for _, status := range []int{http.StatusOK, http.StatusMethodNotAllowed} {
		var methods []string
		address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			methods = append(methods, r.Method)
			if r.Method == http.MethodHead {
				w.WriteHeader(status)
			}
			fmt.Fprint(w, manifest)
		})
		if got := mustResolve(t, r, ask(t, nil, "%s/app:1", address)); got.Digest != sum(manifest) || strings.Join(methods, " ") != "HEAD GET" {
			t.Errorf("after %d: got %s by %q, want %s", status, got.Digest, methods, sum(manifest))
		}
	}
}

// TestCredentialsStayWithTheirRegistry: neither a place for tokens nor a redirect may
// take them where they do not belong.
func TestCredentialsStayWithTheirRegistry(t *testing.T) {
	t.Parallel()
	for reason, realm := range map[string]string{
		"the metadata service of a cloud": "http://169.254.169.254/latest/",
		"the same, as IPv6":               "http://[::ffff:169.254.169.254]/latest/",
		"that of another cloud":           "http://[fd00:ec2::254]/",
		"a file":                          "file:///etc/passwd",
		"nowhere":                         "",
	} {
		address, r := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, realm))
			w.WriteHeader(http.StatusUnauthorized)
		})
		if _, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:1", address)); registry.KindOf(err) != registry.Untrue {
			t.Errorf("%s: error is %v", reason, err)
		}
	}

	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credentials followed a redirect")
		}
		w.Header().Set("Docker-Content-Digest", somewhere)
	}))
	t.Cleanup(thief.Close)
	address, r := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			w.Header().Set("WWW-Authenticate", `Negotiate, x`)
			w.Header().Add("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Authorization") == "" {
			t.Error("the registry itself got no credentials")
		}
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if got := mustResolve(t, r, ask(t, owner(), "%s/app:1", address)); got.Digest != somewhere {
		t.Errorf("the redirect led to %+v", got)
	}

	address, r = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusTemporaryRedirect)
		}
	})
	if _, err := resolve(t.Context(), r, ask(t, nil, "%s/app:1", address)); registry.KindOf(err) != registry.Unreachable || !strings.Contains(err.Error(), "is not the address of a registry") {
		t.Errorf("a redirect to the metadata service: %v", err)
	}
}
