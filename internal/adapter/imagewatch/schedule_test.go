package imagewatch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// standIn answers as a registry inside a test whose time is not real: no connection may
// leave it, so there is none. It has one tag of every repository.
type standIn struct {
	digest  atomic.Value // of the tag
	spoil   func(w http.ResponseWriter, r *http.Request) bool
	heads   atomic.Int64
	tokens  atomic.Int64
	refused atomic.Int64
	expires atomic.Int64 // when the last token does, in Unix seconds
	life    time.Duration
}

func newStandIn() *standIn {
	s := &standIn{life: 5 * time.Minute}
	s.digest.Store(somewhere)
	return s
}

// RoundTrip answers a request.
func (s *standIn) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP is the registry and its token server.
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/token":
		s.tokens.Add(1)
		s.expires.Store(time.Now().Add(s.life).Unix())
		fmt.Fprintf(w, `{"token": "t-%d", "expires_in": %d}`, time.Now().Add(s.life).Unix(), int(s.life.Seconds()))
		return
	case "/v2/":
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://r.example/token",service="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.heads.Add(1)
	if s.spoil != nil && s.spoil(w, r) {
		return
	}
	var until int64
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer t-%d", &until); err != nil || time.Now().Unix() >= until {
		s.refused.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Docker-Content-Digest", s.digest.Load().(string))
}

// resolver asks the stand-in, until the test ends.
func (s *standIn) resolver(t *testing.T, o imagewatch.Options) *imagewatch.Resolver {
	t.Helper()
	o.Registries.Transport = s
	r := imagewatch.New(o)
	run(t, r)
	synctest.Wait()
	return r
}

// after lets time pass, in a test whose time does as soon as all wait for it.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestWatch: a question is asked once per interval whoever watches it, and those who
// watch are woken when the answer changes, and only then.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		var woken atomic.Int64
		var watches []*imagewatch.Watch
		for i := range 100 {
			q := ask(t, owner(), "r.example/app:1")
			q.Asker = fmt.Sprint(i % 10)
			watches = append(watches, r.Watch(q, func() { woken.Add(1) }))
		}
		after(time.Second)
		if s.heads.Load() != 1 || woken.Load() != 100 {
			t.Errorf("at first: %d requests, %d woken", s.heads.Load(), woken.Load())
		}
		v := watches[0].View()
		if v.Digest != somewhere || v.Tag != "1" || v.Err != nil || v.Next.Sub(v.At) < time.Minute || v.Next.Sub(v.At) > 66*time.Second {
			t.Errorf("the view is %+v", v)
		}
		after(time.Hour)
		// An interval is up to a tenth longer than a minute.
		if n := s.heads.Load(); n < 54 || n > 61 || woken.Load() != 100 {
			t.Errorf("after an hour: %d requests, want one a minute; %d woken", n, woken.Load())
		}
		s.digest.Store(sum("new"))
		after(2 * time.Minute)
		if woken.Load() != 200 || watches[99].View().Digest != sum("new") {
			t.Errorf("after a push: %d woken, %+v", woken.Load(), watches[99].View())
		}
		for _, w := range watches {
			w.Stop()
		}
		before := s.heads.Load()
		after(time.Hour)
		if s.heads.Load() != before {
			t.Errorf("%d requests for a question that is watched no more", s.heads.Load()-before)
		}
	})
}

// TestTTL: an answer is used for others until it is as old as that, and a question is asked
// no more often.
func TestTTL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval, ttl time.Duration
		hour          [2]int64 // at least and at most so many requests of one asker
		other         int64    // requests of another who comes after half a minute
	}{
		"by default":               {time.Minute, 0, [2]int64{54, 61}, 0},
		"shorter than an interval": {time.Minute, 10 * time.Second, [2]int64{54, 61}, 1},
		"longer than an interval":  {time.Minute, 10 * time.Minute, [2]int64{5, 7}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandIn()
			synctest.Test(t, func(t *testing.T) {
				r := s.resolver(t, imagewatch.Options{Interval: c.interval, TTL: c.ttl})
				q := ask(t, owner(), "r.example/app:1")
				defer r.Watch(q, func() {}).Stop()
				after(30 * time.Second)
				q.Asker = "another"
				before := s.heads.Load()
				mustResolve(t, r, q)
				if n := s.heads.Load() - before; n != c.other {
					t.Errorf("%d requests for an answer that is half a minute old, want %d", n, c.other)
				}
				before = s.heads.Load()
				after(time.Hour)
				if n := s.heads.Load() - before; n < c.hour[0] || n > c.hour[1] {
					t.Errorf("%d requests in an hour, want %v", n, c.hour)
				}
			})
		})
	}
}

// TestTokensAreRenewed: before they expire, so that no request is refused for it.
func TestTokensAreRenewed(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		for i := range 20 {
			defer r.Watch(ask(t, owner(), "r.example/app-%d:1", i), func() {}).Stop()
		}
		after(time.Hour)
		if s.refused.Load() != 0 {
			t.Errorf("%d requests with an expired token", s.refused.Load())
		}
		// One lives for five minutes, less half a minute. Two checks that find it expired at the same time
		// request one each.
		if n := s.tokens.Load(); n > 2*(1+60*2/9) {
			t.Errorf("%d tokens in an hour for twenty repositories", n)
		}
	})
}

// TestFailuresAreRetriedEverMoreRarely: after 5, 10, 20, 40 seconds and then at the
// interval; an answer ends it.
func TestFailuresAreRetriedEverMoreRarely(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	var at []time.Duration
	var start time.Time
	var good atomic.Bool
	s.spoil = func(w http.ResponseWriter, _ *http.Request) bool {
		at = append(at, time.Since(start).Round(time.Second))
		if !good.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return !good.Load()
	}
	exactly := func(d time.Duration) time.Duration { return d }
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Jitter: exactly})
		start = time.Now()
		var woken atomic.Int64
		w := r.Watch(ask(t, owner(), "r.example/app:1"), func() { woken.Add(1) })
		defer w.Stop()
		after(200 * time.Second)
		if got, want := fmt.Sprint(at), "[0s 5s 15s 35s 1m15s 2m15s 3m15s]"; got != want {
			t.Errorf("asked at %s, want %s", got, want)
		}
		if woken.Load() != 1 || registry.KindOf(w.View().Err) != registry.Broken {
			t.Errorf("woken %d times, %+v", woken.Load(), w.View())
		}
		good.Store(true)
		after(time.Minute)
		if woken.Load() != 2 || w.View().Err != nil || w.View().Digest != somewhere {
			t.Errorf("woken %d times, %+v", woken.Load(), w.View())
		}
	})
}

// TestRetryAfter: until the time that a registry names it gets no request, whatever the
// question.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	var limited atomic.Bool
	limited.Store(true)
	s.spoil = func(w http.ResponseWriter, _ *http.Request) bool {
		if limited.Load() {
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return limited.Load()
	}
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		start := time.Now()
		first := r.Watch(ask(t, owner(), "r.example/app:1"), func() {})
		defer first.Stop()
		after(time.Second)
		limited.Store(false)
		for i := range 20 {
			w := r.Watch(ask(t, owner(), "r.example/app-%d:1", i), func() {})
			defer w.Stop()
		}
		r.Check(ask(t, owner(), "r.example/app:1").Repository)
		after(30*time.Minute - 2*time.Second)
		if n := s.heads.Load(); n != 1 {
			t.Errorf("%d requests before the time", n)
		}
		after(4 * time.Minute)
		if v := first.View(); v.Err != nil || v.At.Sub(start) < 30*time.Minute || s.heads.Load() < 21 {
			t.Errorf("after the time: %+v, %d requests", v, s.heads.Load())
		}
	})
}

// counted is a source of credentials that counts how often it is read.
type counted struct {
	known
	reads *atomic.Int64
}

func (c counted) Credentials(ctx context.Context, r tagspec.Repository) ([]keychain.Credential, error) {
	c.reads.Add(1)
	return c.known.Credentials(ctx, r)
}

// TestCredentialsAreReadAtEachCheck: for all who watch with the same pull secrets once,
// and again the next time, so that a replaced Secret counts.
func TestCredentialsAreReadAtEachCheck(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		var reads atomic.Int64
		for range 50 {
			defer r.Watch(ask(t, counted{owner(), &reads}, "r.example/app:1"), func() {}).Stop()
		}
		after(time.Second)
		if reads.Load() != 1 {
			t.Errorf("read %d times for one check", reads.Load())
		}
		after(10 * time.Minute)
		if n := reads.Load(); n < 9 || n > 11 {
			t.Errorf("read %d times in ten minutes", n)
		}
	})
}

// TestBrokenRegistryIsLeftAlone: after three failures in a row all questions wait, not
// only the one that failed.
func TestBrokenRegistryIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.spoil = answering(http.StatusBadGateway)
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		for i := range 100 {
			defer r.Watch(ask(t, owner(), "r.example/app-%d:1", i), func() {}).Stop()
		}
		after(10 * time.Minute)
		// Without the pause it would be about 100 × 13.
		if n := s.heads.Load(); n > 200 {
			t.Errorf("%d requests to a broken registry in ten minutes", n)
		}
	})
}

// outage is a registry that can't be reached until it is over.
type outage struct {
	*standIn
	over  atomic.Bool
	tries atomic.Int64
}

// RoundTrip answers a request when the outage is over.
func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.tries.Add(1)
	if !o.over.Load() {
		return nil, errors.New("connection refused")
	}
	return o.standIn.RoundTrip(r)
}

// TestLongOutage: a registry that was down for hours is asked again within five minutes and a
// tenth, for all images, however short the interval is.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	down := &outage{standIn: newStandIn()}
	synctest.Test(t, func(t *testing.T) {
		r := imagewatch.New(imagewatch.Options{Interval: 10 * time.Second, TTL: time.Minute, Registries: registry.Options{Transport: down}})
		run(t, r)
		var watches []*imagewatch.Watch
		for i := range 100 {
			watches = append(watches, r.Watch(ask(t, owner(), "r.example/app-%d:1", i), func() {}))
			defer watches[i].Stop()
		}
		after(3 * time.Hour)
		for before := down.tries.Load(); down.tries.Load() == before; { // the pause that has just begun is a whole one
			after(time.Second)
		}
		down.over.Store(true)
		after(330 * time.Second)
		for i, w := range watches {
			if v := w.View(); v.Err != nil || v.Digest != somewhere {
				t.Errorf("image %d has not been checked: %v", i, v.Err)
			}
		}
	})
}

// TestUnreadSecretIsNamed: when a registry refuses, a pull secret that could not be read
// is the likely cause.
func TestUnreadSecretIsNamed(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.spoil = answering(http.StatusForbidden)
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{})
		_, err := r.Resolve(t.Context(), ask(t, broken{}, "r.example/app:1"))
		if err == nil || !strings.Contains(err.Error(), "pull secret shop/pull: not found") || registry.KindOf(err) != registry.Denied {
			t.Errorf("error is %v", err)
		}
	})
}

// TestTooManyPullSecrets: the bound is counted at each check, and named when the registry refuses.
func TestTooManyPullSecrets(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	s.spoil = answering(http.StatusForbidden)
	synctest.Test(t, func(t *testing.T) {
		var bounds []registry.Bound
		r := s.resolver(t, imagewatch.Options{Exceeded: func(b registry.Bound) { bounds = append(bounds, b) }})
		_, err := r.Resolve(t.Context(), ask(t, tooMany{}, "r.example/app:1"))
		e, ok := errors.AsType[*registry.Error](err)
		if !ok || e.Bound != registry.PullSecrets || !strings.Contains(err.Error(), "only the first 32 pull secrets are read") || !slices.Equal(bounds, []registry.Bound{registry.PullSecrets}) {
			t.Errorf("error is %v, bounds %v", err, bounds)
		}
	})
}

type tooMany struct{}

func (tooMany) Credentials(context.Context, tagspec.Repository) ([]keychain.Credential, error) {
	return nil, errors.Join(keychain.ErrTooManySecrets, errors.New("pull secret shop/pull: not found"))
}

type broken struct{}

func (broken) Credentials(context.Context, tagspec.Repository) ([]keychain.Credential, error) {
	return nil, fmt.Errorf("pull secret shop/pull: not found")
}

// answering spoils every answer.
func answering(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(code)
		return true
	}
}

// TestSlowRegistryDelaysNoOther: all requests to one registry hang, and another one
// answers as always.
func TestSlowRegistryDelaysNoOther(t *testing.T) {
	t.Parallel()
	slow, good := testkit.ServeRegistry(t, registrylab.Options{}), testkit.ServeRegistry(t, registrylab.Options{})
	want := push(t, good, "app", "1", "a")
	r := newResolver(imagewatch.Options{}, slow, good)
	var hanging atomic.Int32
	slow.Spoil(func(_ http.ResponseWriter, r *http.Request) bool {
		hanging.Add(1)
		slow.Hang(r)
		return true
	})
	run(t, r)
	for range 50 {
		w := r.Watch(ask(t, owner(), "%s/app-%d:1", slow.Address, hanging.Load()), func() {})
		defer w.Stop()
	}
	labtest.Eventually(t, time.Minute, func() (bool, string) { return hanging.Load() > 0, "the slow registry hasn't received a request" })
	if got := mustResolve(t, r, ask(t, owner(), "%s/app:1", good.Address)); got.Digest != want {
		t.Errorf("got %s, want %s", got.Digest, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrUnexpectedEOF)
	if _, err := r.Resolve(ctx, ask(t, owner(), "%s/other:1", slow.Address)); registry.KindOf(err) != registry.Unreachable {
		t.Errorf("the slow one: %v", err)
	}
}
