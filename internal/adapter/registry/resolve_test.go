package registry_test

import (
	"context"
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
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// announced is a source that tells when it has been asked a number of times.
type announced struct {
	known
	asked *sync.WaitGroup
}

func (a announced) Credentials(ctx context.Context, r tagspec.Repository) ([]keychain.Credential, error) {
	a.asked.Done()
	return a.known.Credentials(ctx, r)
}

// TestOneRequestForManyAskers: twenty images that a hundred askers want cost twenty
// requests, and a few for tokens.
func TestOneRequestForManyAskers(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	digests := map[string]string{}
	for i := range 20 {
		repository := fmt.Sprintf("team/app-%02d", i)
		digests[s.Address+"/"+repository] = push(t, s, repository, "1", repository)
	}
	s.Counts()
	r := newResolver(registry.Options{}, s)
	var (
		questions []registry.Question
		asked     sync.WaitGroup
	)
	asked.Add(100)
	s.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		if registrylab.KindOf(r) == "ping" {
			asked.Wait() // All of them are there before the first token is asked for.
		}
		return false
	})
	for i := range 100 {
		q := ask(t, announced{owner(), &asked}, "%s/team/app-%02d:1", s.Address, i%20)
		q.Asker = fmt.Sprintf("namespace-%d/pull", i) // Many Secrets that say the same.
		questions = append(questions, q)
	}
	for _, round := range []struct {
		name string
		want map[string]int // with tokens
		most int            // tokens
	}{
		{"first", map[string]int{"ping": 1, "head": 20}, 2},
		{"within the interval", map[string]int{}, 0},
		{"next", map[string]int{"head": 20}, 0},
	} {
		if round.name != "first" {
			asked.Add(100)
		}
		if round.name == "next" {
			for _, q := range questions {
				r.Forget(q.Repository)
			}
		}
		for i, got := range all(t, r, questions) {
			if want := digests[questions[i].Repository.String()]; got.Digest != want || got.Tag != "1" {
				t.Errorf("%s is %s, want %s", questions[i].Repository, got.Digest, want)
			}
		}
		counts := s.Counts()
		if tokens := counts["token"]; tokens > round.most {
			t.Errorf("%s: %d requests for tokens, want at most %d", round.name, tokens, round.most)
		}
		delete(counts, "token")
		if !cmp.Equal(counts, round.want) {
			t.Errorf("%s: %v requests, want %v", round.name, counts, round.want)
		}
	}
}

// TestEveryCredentialIsTried: as the kubelet does, and the one that was accepted is the
// first one next time.
func TestEveryCredentialIsTried(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	s.Tokens.AddReader("other", "other-password", "team/other")
	s.Tokens.AddReader("reader", "reader-password", "team/app")
	as := known{
		{Username: "nobody", Password: "wrong-password"},
		{Username: "other", Password: "other-password"},
		{Username: "reader", Password: "reader-password"},
	}
	s.Counts()
	r := newResolver(registry.Options{}, s)
	q := ask(t, as, "%s/team/app:1", s.Address)
	if got := mustResolve(t, r, q); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	s.Counts()
	r.Forget(q.Repository)
	mustResolve(t, r, q)
	if got := s.Counts(); !cmp.Equal(got, map[string]int{"head": 1}) {
		t.Errorf("the second check took %v, want the credential that is known to be right", got)
	}

	_, err := r.Resolve(t.Context(), ask(t, as[:2], "%s/team/app:1", s.Address))
	if registry.KindOf(err) != registry.Denied || !strings.Contains(err.Error(), "answered 401") || !strings.Contains(err.Error(), "add a pull secret for "+s.Address) {
		t.Errorf("without the right one: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "password") {
		t.Errorf("a password is in %q", err)
	}
	if _, err := r.Resolve(t.Context(), ask(t, nil, "%s/team/app:1", s.Address)); registry.KindOf(err) != registry.Denied {
		t.Errorf("anonymously: %v", err)
	}
}

// TestAnswersAreNotSharedAcrossCredentials: who may not read hears nothing from who may.
func TestAnswersAreNotSharedAcrossCredentials(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	push(t, s, "team/app", "1", "a")
	s.Tokens.AddReader("other", "other-password", "team/other")
	r := newResolver(registry.Options{}, s)
	mustResolve(t, r, ask(t, owner(), "%s/team/app:1", s.Address))
	mustResolve(t, r, ask(t, owner(), "%s/team/app:*", s.Address))
	other := known{{Username: "other", Password: "other-password"}}
	for _, spec := range []string{"1", "*"} {
		if got, err := r.Resolve(t.Context(), ask(t, other, "%s/team/app:%s", s.Address, spec)); registry.KindOf(err) != registry.Denied {
			t.Errorf("%s: another user got %+v, error %v", spec, got, err)
		}
	}
}

// TestTokensOfOneRepository: some token servers open only the first repository that is
// asked for. That costs one more token for each, and nothing else.
func TestTokensOfOneRepository(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	var questions []registry.Question
	for _, name := range []string{"a", "b", "c", "d"} {
		push(t, s, name, "1", name)
		questions = append(questions, ask(t, owner(), "%s/%s:1", s.Address, name))
	}
	s.Tokens.OpenFirstOnly()
	r := newResolver(registry.Options{}, s)
	all(t, r, questions)
	s.Counts()
	for _, q := range questions {
		r.Forget(q.Repository)
	}
	all(t, r, questions)
	if got := s.Counts(); !cmp.Equal(got, map[string]int{"head": 4}) {
		t.Errorf("the second poll took %v, want 4 heads", got)
	}
}

func TestIdentityToken(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	r := newResolver(registry.Options{}, s)
	as := known{{IdentityToken: registrylab.Password}}
	if got := mustResolve(t, r, ask(t, as, "%s/team/app:1", s.Address)); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
}

// TestRevokedToken: a token that a registry does not accept any more is replaced.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	want := push(t, s, "team/app", "1", "a")
	r := newResolver(registry.Options{}, s)
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
	r.Forget(q.Repository)
	if got := mustResolve(t, r, q); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	if got, want := s.Counts(), map[string]int{"head": 2, "token": 1}; !cmp.Equal(got, want) {
		t.Errorf("%v requests, want %v", got, want)
	}
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{})
	index := push(t, s, "team/app", "1", "a")
	single, err := s.PushImage(t.Context(), "team/app", "single", "b")
	if err != nil {
		t.Fatal(err)
	}
	s.Counts()
	r := newResolver(registry.Options{}, s)
	for _, c := range []struct {
		reason, tag, platforms string
		child                  bool
		want                   string // a digest; "child" is neither of the two
		wantErr                string
	}{
		{"no platform", "1", "", false, index, ""},
		{"one that is there", "1", "linux/amd64", false, index, ""},
		{"all of them", "1", "linux/amd64 linux/arm64", false, index, ""},
		{"the usual variant", "1", "linux/arm64/v8", false, index, ""},
		{"one that is missing", "1", "linux/amd64 windows/amd64", false, "", "is for linux/amd64, linux/arm64/v8, and not for windows/amd64"},
		{"another variant", "1", "linux/arm64/v9", false, "", "not for linux/arm64/v9"},
		{"the child", "1", "linux/arm64", true, "child", ""},
		{"the child of a missing one", "1", "linux/s390x", true, "", "not for linux/s390x"},
		{"a single image", "single", "linux/amd64", false, single, ""},
		{"a single image of another platform", "single", "linux/arm64", false, "", "is for linux/amd64, and not for linux/arm64"},
		{"a single image has no child", "single", "linux/arm64", true, single, ""},
	} {
		q := ask(t, owner(), "%s/team/app:%s", s.Address, c.tag)
		q.Child = c.child
		for text := range strings.FieldsSeq(c.platforms) {
			q.Platforms = append(q.Platforms, platform(t, text))
		}
		got, err := r.Resolve(t.Context(), q)
		if c.wantErr != "" {
			if registry.KindOf(err) != registry.NoPlatform || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%s: got %v, error %v, want %q", c.reason, got, err, c.wantErr)
			}
			continue
		}
		isChild := err == nil && got.Digest != index && got.Digest != single
		if err != nil || got.Digest != c.want && (c.want != "child" || !isChild) {
			t.Errorf("%s: got %+v, error %v, want %s", c.reason, got, err, c.want)
		}
	}
	// What has a digest never changes: it was read once.
	counts := s.Counts()
	delete(counts, "token")
	if want := map[string]int{"ping": 1, "head": 2, "manifest": 2, "blob": 1}; !cmp.Equal(counts, want) {
		t.Errorf("%v requests, want %v", counts, want)
	}
	if _, err := registry.ParsePlatform("amd64"); err == nil {
		t.Error("a platform without an operating system was read")
	}
}

// TestTokensWithoutTLS: a registry without TLS may have its tokens at another address
// without TLS, be it called so by configuration or found to be so.
func TestTokensWithoutTLS(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{Plain: true})
	digest := push(t, s, "team/app", "1", "a")
	s.Counts()
	for name, o := range map[string]registry.Options{
		"by configuration": {Hosts: map[string]registry.Host{s.Address: {PlainHTTP: true}}},
		"a local one":      {Local: func(host string) bool { return host == s.Address }},
	} {
		r := registry.New(o)
		if found := mustResolve(t, r, ask(t, owner(), "%s/team/app:1", s.Address)); found.Digest != digest {
			t.Errorf("%s: %+v", name, found)
		}
		if counts := s.Counts(); counts["token"] != 1 {
			t.Errorf("%s: no token was needed: %v", name, counts)
		}
		_, err := registry.New(o).Resolve(t.Context(), ask(t, known{{Username: registrylab.User, Password: "wrong"}}, "%s/team/app:1", s.Address))
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
		r := registry.New(registry.Options{Hosts: map[string]registry.Host{address: {CA: certificate}}, Local: func(string) bool { return local }})
		_, err := r.Resolve(t.Context(), ask(t, owner(), "%s/app:1", address))
		if registry.KindOf(err) != registry.Untrue || !strings.Contains(err.Error(), "it wants the credentials over http") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// TestPlainHTTPAndUnknownCA: both are a matter of configuration, and the error says so.
func TestPlainHTTPAndUnknownCA(t *testing.T) {
	t.Parallel()
	s := startRegistry(t, registrylab.Options{Public: true})
	push(t, s, "team/app", "1", "a")
	mustResolve(t, newResolver(registry.Options{}, s), ask(t, nil, "%s/team/app:1", s.Address))
	for name, o := range map[string]registry.Options{
		"without its CA": {},
		"with another":   {Hosts: map[string]registry.Host{s.Address: {CA: []byte("no certificate")}}},
		"over HTTP":      {Hosts: map[string]registry.Host{s.Address: {PlainHTTP: true}}},
	} {
		_, err := registry.New(o).Resolve(t.Context(), ask(t, nil, "%s/team/app:1", s.Address))
		if err == nil {
			t.Errorf("%s: it answered", name)
		}
	}
	_, err := registry.New(registry.Options{}).Resolve(t.Context(), ask(t, known{keychain.Credential{}}, "%s/team/app:1", s.Address))
	if registry.KindOf(err) != registry.Unreachable || !strings.Contains(err.Error(), "plain HTTP or a private CA") {
		t.Errorf("error is %v", err)
	}
}
