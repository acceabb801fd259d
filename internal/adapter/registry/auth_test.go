package registry_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestEveryCredentialIsTried: as the kubelet does, and the one that was accepted is the
// first one next time.
func TestEveryCredentialIsTried(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	s.Tokens.AddReader("other", "other-password", "team/other")
	s.Tokens.AddReader("reader", "reader-password", "team/app")
	as := known{
		{Username: "nobody", Password: "wrong-password"},
		{Username: "other", Password: "other-password"},
		{Username: "reader", Password: "reader-password"},
	}
	s.Counts()
	r := newClient(registry.Options{}, s)
	q := ask(t, as, "%s/team/app:1", s.Address)
	if got := mustResolve(t, r, q); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	s.Counts()
	mustResolve(t, r, q)
	if got := s.Counts(); !cmp.Equal(got, map[string]int{"head": 1}) {
		t.Errorf("the second check took %v, want the credential that is known to be right", got)
	}

	_, err := resolve(t.Context(), r, ask(t, as[:2], "%s/team/app:1", s.Address))
	if registry.KindOf(err) != registry.Denied || !strings.Contains(err.Error(), "answered 401") || !strings.Contains(err.Error(), "add a pull secret for "+s.Address) {
		t.Errorf("without the right one: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "password") {
		t.Errorf("a password is in %q", err)
	}
	if _, err := resolve(t.Context(), r, ask(t, nil, "%s/team/app:1", s.Address)); registry.KindOf(err) != registry.Denied {
		t.Errorf("anonymously: %v", err)
	}
}

// TestTokensOfOneRepository: some token servers open only the first repository that is
// asked for. That costs one more token for each, and nothing else.
func TestTokensOfOneRepository(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	var questions []wanted
	for _, name := range []string{"a", "b", "c", "d"} {
		push(t, s, name, "1", name)
		questions = append(questions, ask(t, owner(), "%s/%s:1", s.Address, name))
	}
	s.Tokens.OpenFirstOnly()
	r := newClient(registry.Options{}, s)
	askAll := func() {
		var asking sync.WaitGroup
		for _, q := range questions {
			asking.Go(func() {
				if _, err := resolve(t.Context(), r, q); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
	}
	askAll()
	s.Counts()
	askAll()
	if got := s.Counts(); !cmp.Equal(got, map[string]int{"head": 4}) {
		t.Errorf("the second poll took %v, want 4 heads", got)
	}
}

func TestIdentityToken(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	r := newClient(registry.Options{}, s)
	as := known{{IdentityToken: registrylab.Password}}
	if got := mustResolve(t, r, ask(t, as, "%s/team/app:1", s.Address)); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
}

// TestRevokedToken: a token that a registry does not accept any more is replaced.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	r := newClient(registry.Options{}, s)
	q := ask(t, owner(), "%s/team/app:1", s.Address)
	mustResolve(t, r, q)
	var refused atomic.Bool
	s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) == "head" && refused.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	s.Counts()
	if got := mustResolve(t, r, q); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	if got, want := s.Counts(), map[string]int{"head": 2, "token": 1}; !cmp.Equal(got, want) {
		t.Errorf("%v requests, want %v", got, want)
	}
}

// TestTokensWithoutTLS: a registry without TLS may have its tokens at another address
// without TLS, be it called so by configuration or found to be so.
func TestTokensWithoutTLS(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{Plain: true})
	digest := push(t, s, "team/app", "1", "a")
	s.Counts()
	for name, o := range map[string]registry.Options{
		"by configuration": {Hosts: map[string]registry.Host{s.Address: {PlainHTTP: true}}},
		"a local one":      {Local: func(host string) bool { return host == s.Address }},
	} {
		r := registry.NewClient(o)
		if found := mustResolve(t, r, ask(t, owner(), "%s/team/app:1", s.Address)); found.Digest != digest {
			t.Errorf("%s: %+v", name, found)
		}
		if counts := s.Counts(); counts["token"] != 1 {
			t.Errorf("%s: no token was needed: %v", name, counts)
		}
		_, err := resolve(t.Context(), registry.NewClient(o), ask(t, known{{Username: registrylab.User, Password: "wrong"}}, "%s/team/app:1", s.Address))
		if registry.KindOf(err) != registry.Denied {
			t.Errorf("%s, with a wrong password: %v", name, err)
		}
		s.Counts()
	}
}

// TestTokensWithTLS: a registry with TLS gets no credentials to a place without it.
func TestTokensWithTLS(t *testing.T) {
	t.Parallel()
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the credentials were asked for without TLS") }))
	t.Cleanup(thief.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, thief.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, local := range map[string]bool{"elsewhere": false, "local": true} {
		r := registry.NewClient(registry.Options{Hosts: map[string]registry.Host{address: {CA: certificate}}, Local: func(string) bool { return local }})
		_, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:1", address))
		if registry.KindOf(err) != registry.Untrue || !strings.Contains(err.Error(), "it requests the credentials over http") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// TestPlainHTTPAndUnknownCA: both are a matter of configuration, and the error says so.
func TestPlainHTTPAndUnknownCA(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{Public: true})
	push(t, s, "team/app", "1", "a")
	mustResolve(t, newClient(registry.Options{}, s), ask(t, nil, "%s/team/app:1", s.Address))
	for name, o := range map[string]registry.Options{
		"without its CA": {},
		"with another":   {Hosts: map[string]registry.Host{s.Address: {CA: []byte("no certificate")}}},
		"over HTTP":      {Hosts: map[string]registry.Host{s.Address: {PlainHTTP: true}}},
	} {
		_, err := resolve(t.Context(), registry.NewClient(o), ask(t, nil, "%s/team/app:1", s.Address))
		if err == nil {
			t.Errorf("%s: it answered", name)
		}
	}
	_, err := resolve(t.Context(), registry.NewClient(registry.Options{}), ask(t, known{keychain.Credential{}}, "%s/team/app:1", s.Address))
	if registry.KindOf(err) != registry.Unreachable || !strings.Contains(err.Error(), "plain HTTP or a private CA") {
		t.Errorf("error is %v", err)
	}
}
