package registry_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestFaults: what a registry answers decides when it is asked again, and what people
// hear.
func TestFaults(t *testing.T) {
	t.Parallel()
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if kind := registrylab.KindOf(r); kind != "head" && kind != "tags" {
				return false
			}
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			return true
		}
	}
	for _, c := range []struct {
		reason string
		spoil  func(http.ResponseWriter, *http.Request) bool
		kind   registry.FailureKind
		words  string
		// held is for how long no further request is made, at least and at most.
		atLeast, atMost time.Duration
	}{
		{"credentials are refused", status(401), registry.Denied, "answered 401 Unauthorized", 0, 0},
		{"forbidden", status(403), registry.Denied, "answered 403 Forbidden", 0, 0},
		{"too many, with a time", status(429, "Retry-After", "120"), registry.Limited, "answered 429", 119 * time.Second, 120 * time.Second},
		{"too many, with a date", status(429, "Retry-After", time.Now().Add(30*time.Minute).UTC().Format(http.TimeFormat)), registry.Limited, "answered 429", 20 * time.Minute, 30 * time.Minute},
		{"too many, with a time that never comes", status(429, "Retry-After", "99999999"), registry.Limited, "answered 429", 59 * time.Minute, time.Hour},
		{"too many, without a time", status(429), registry.Limited, "answered 429", 0, time.Second},
		{"unavailable for a time", status(503, "Retry-After", "60"), registry.Broken, "answered 503", 59 * time.Second, time.Minute},
		{"an internal error", status(500), registry.Broken, "answered 500 Internal Server Error; Lockstep tries again later", 0, 0},
		{"no registry", status(418), registry.Broken, "a registry doesn't answer like this", 0, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := testkit.ServeRegistry(t, registrylab.Options{})
			push(t, s, "app", "1", "a")
			r := newClient(registry.Options{}, s)
			s.Spoil(c.spoil)
			before := time.Now()
			_, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:1", s.Address))
			after := time.Now()
			if registry.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("error is %v, want %s and %q", err, c.kind, c.words)
			}
			if c.atMost == 0 {
				return
			}
			for pause := c.atMost; ; pause *= 2 {
				s.Counts()
				begun := time.Now()
				_, err = resolve(t.Context(), r, ask(t, owner(), "%s/other:1", s.Address))
				var limited *registry.Error
				if limited, _ = err.(*registry.Error); limited == nil || limited.Kind != registry.Limited { //nolint:errorlint // It is not wrapped.
					t.Fatalf("the next question: %v", err)
				}
				if n := total(s.Counts()); n != 0 {
					if c.atLeast > 0 {
						t.Fatalf("%d requests to a registry that wants none", n)
					}
					// A slow machine asks when the pause is over. The next one is longer.
					before, after = begun, time.Now()
					continue
				}
				if limited.Until.Before(before.Add(c.atLeast)) || limited.Until.After(after.Add(pause)) {
					t.Errorf("it is not queried until %s after its answer, want %s to %s", limited.Until.Sub(after), c.atLeast, pause)
				}
				break
			}
		})
	}
}

// TestRateLimitHeaders: a registry that says that nothing is left is left alone before
// it has to refuse; Docker Hub, which counts reads of manifests only, is still asked for
// digests.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers map[string]string
		head    registry.FailureKind // of the next question for a digest
		read    registry.FailureKind // of the next one that reads a manifest
	}{
		"some are left":      {map[string]string{"ratelimit-remaining": "76;w=21600"}, "", ""},
		"Docker Hub":         {map[string]string{"ratelimit-remaining": "0;w=21600"}, "", registry.Limited},
		"the draft":          {map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "60"}, registry.Limited, registry.Limited},
		"GitHub":             {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}, registry.Limited, registry.Limited},
		"what is no number":  {map[string]string{"RateLimit-Remaining": "none", "RateLimit-Reset": "60"}, "", ""},
		"a time that passed": {map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testkit.ServeRegistry(t, registrylab.Options{})
			push(t, s, "app", "1", "a")
			push(t, s, "app", "2", "b")
			s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
				if registrylab.KindOf(r) == "head" {
					for name, value := range c.headers {
						w.Header().Set(name, value)
					}
				}
				return false
			})
			r := newClient(registry.Options{}, s)
			mustResolve(t, r, ask(t, owner(), "%s/app:1", s.Address))
			q := ask(t, owner(), "%s/app:1", s.Address)
			q.read = true
			if _, err := resolve(t.Context(), r, q); registry.KindOf(err) != c.read {
				t.Errorf("reading a manifest: %v", err)
			}
			if _, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:2", s.Address)); registry.KindOf(err) != c.head {
				t.Errorf("asking for a digest: %v", err)
			}
		})
	}
}

// TestBrokenTokenServer: its failures are told without what it said.
func TestBrokenTokenServer(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "app", "1", "a")
	for answer, want := range map[string]struct {
		status int
		kind   registry.FailureKind
	}{
		`{"token": "hunter2`:         {200, registry.Untrue},
		`{"token": ""}`:              {200, registry.Untrue},
		`{"token": "a\nhunter2: b"}`: {200, registry.Untrue},
		`hunter2`:                    {500, registry.Broken},
		`hunter2 again`:              {401, registry.Denied},
		`hunter2 not here`:           {404, registry.Broken},
		`hunter2 too many`:           {429, registry.Limited},
	} {
		s.Spoil(func(w http.ResponseWriter, r *http.Request) bool {
			if registrylab.KindOf(r) != "token" {
				return false
			}
			w.WriteHeader(want.status)
			_, err := w.Write([]byte(answer))
			return err == nil
		})
		r := newClient(registry.Options{}, s)
		_, err := resolve(t.Context(), r, ask(t, owner(), "%s/app:1", s.Address))
		if registry.KindOf(err) != want.kind || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "the token server of "+s.Address) {
			t.Errorf("%s: error is %v, want %s", answer, err, want.kind)
		}
	}
}

// TestObserve: each request is counted by what it is for.
func TestObserve(t *testing.T) {
	t.Parallel()
	s := testkit.ServeRegistry(t, registrylab.Options{})
	push(t, s, "app", "1", "a")
	seen := map[registry.RequestKind]int{}
	r := newClient(registry.Options{Observe: func(q registry.Request) {
		if q.Host != s.Address || q.Status == 0 {
			t.Errorf("%+v", q)
		}
		seen[q.Kind]++
	}}, s)
	q := ask(t, owner(), "%s/app:*", s.Address)
	q.read = true
	mustResolve(t, r, q)
	want := map[registry.RequestKind]int{registry.PingRequest: 1, registry.TokenRequest: 1, registry.TagsRequest: 1, registry.HeadRequest: 1, registry.ManifestRequest: 1}
	if !cmp.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}
