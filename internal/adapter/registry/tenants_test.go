package registry_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

// TestCredentialStopsNoOther: however often requests with one credential fail, because net/http refuses to
// send it or the token server fails on it, the registry is queried with others.
func TestCredentialStopsNoOther(t *testing.T) {
	t.Parallel()
	for reason, bad := range map[string]keychain.Credential{
		"a token of two lines":            {RegistryToken: "a\nb"},
		"the token server fails":          {Username: "fails", Password: "p"},
		"the token server doesn't answer": {Username: "hangs up", Password: "p"},
	} {
		address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			user, _, _ := r.BasicAuth()
			switch {
			case r.URL.Path == "/token" && user == "fails":
				w.WriteHeader(http.StatusInternalServerError)
			case r.URL.Path == "/token" && user == "hangs up":
				raw(w, "")
			case r.URL.Path == "/token":
				_, _ = fmt.Fprint(w, `{"token":"abc"}`)
			case r.Header.Get("Authorization") == "":
				challenge(w, `Bearer realm="http://`+r.Host+`/token",service="x"`)
			default:
				w.Header().Set("Docker-Content-Digest", somewhere)
			}
		})
		for tries := 1; ; tries++ { // The pauses get longer, so it meets one even if each try takes long.
			_, err := resolve(t.Context(), c, ask(t, known{bad}, "%s/evil-%d:1", address, tries))
			if registry.KindOf(err) == registry.Limited {
				break
			}
			if err == nil || tries > 10 {
				t.Fatalf("%s: after %d tries the credential itself doesn't have to wait: %v", reason, tries, err)
			}
		}
		if _, err := resolve(t.Context(), c, ask(t, known{{Username: "neighbour", Password: "p"}}, "%s/app:1", address)); err != nil {
			t.Errorf("%s: another credential: %v", reason, err)
		}
	}
}

// TestManyCredentials: few are tried for one image, and the error says so.
func TestManyCredentials(t *testing.T) {
	t.Parallel()
	requests := 0
	address, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			requests++
		}
		challenge(w, `Basic realm="x"`)
	})
	var bounds []registry.Bound
	c := registry.NewClient(registry.Options{
		Hosts: map[string]registry.Host{address: {PlainHTTP: true}}, Exceeded: func(b registry.Bound) { bounds = append(bounds, b) },
	})
	check := func(credentials, want int, bound bool) {
		t.Helper()
		requests, bounds = 0, nil
		as := make(known, credentials)
		for i := range as {
			as[i] = keychain.Credential{Username: fmt.Sprint("u", i), Password: "p"}
		}
		_, err := resolve(t.Context(), c, ask(t, as, "%s/app:1", address))
		if requests != want || registry.KindOf(err) != registry.Denied {
			t.Errorf("%d credentials: %d requests, want %d; error %v", credentials, requests, want, err)
		}
		if strings.Contains(err.Error(), "only the 8 most specific") != bound || slices.Contains(bounds, registry.Credentials) != bound {
			t.Errorf("%d credentials: error %v, bounds %v", credentials, err, bounds)
		}
	}
	check(8, 8, false)
	check(5000, 8, true)
}

// TestPausedCredentialsAreRemembered: however many other credentials a registry is queried with, the ones
// that it told to wait do.
func TestPausedCredentialsAreRemembered(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	address, c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, _, ok := r.BasicAuth()
		asked[user]++
		switch {
		case !ok:
			challenge(w, `Basic realm="x"`)
		case strings.HasPrefix(user, "paused"):
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	check := func(user string, want registry.FailureKind) {
		t.Helper()
		if _, err := resolve(t.Context(), c, ask(t, known{{Username: user, Password: "p"}}, "%s/app:1", address)); registry.KindOf(err) != want {
			t.Fatalf("%s: %v, want %s", user, err, want)
		}
	}
	check("paused", registry.Limited)
	for i := range 1100 {
		check(fmt.Sprint("other-", i), registry.Denied)
	}
	check("paused", registry.Limited)
	for i := range 1100 {
		check(fmt.Sprint("paused-", i), registry.Limited)
	}
	// Each of them has to wait, so there is no room left. A new credential is used without being remembered.
	check("new", registry.Denied)
	check("paused", registry.Limited)
	if asked["paused"] != 1 || asked["new"] != 1 {
		t.Errorf("%d requests with the credential that was told to wait, %d with the new one", asked["paused"], asked["new"])
	}
}
