package imagewatch_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
)

// TestCheck: a push is noticed at once; a thousand of them make no storm.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Interval: time.Hour})
		q := ask(t, owner(), "r.example/app:1")
		w := r.Watch(q, func() {})
		defer w.Stop()
		defer r.Watch(ask(t, owner(), "r.example/app-2:1"), func() {}).Stop()
		after(10 * time.Minute)
		s.digest.Store(sum("pushed"))
		before := s.heads.Load()
		r.Check(q.Repository)
		after(time.Second)
		if w.View().Digest != sum("pushed") || s.heads.Load() != before+1 {
			t.Errorf("%+v after %d requests", w.View(), s.heads.Load()-before)
		}
		for range 1000 {
			r.Check(q.Repository)
			after(10 * time.Millisecond)
		}
		if n := s.heads.Load() - before; n > 12 {
			t.Errorf("%d requests for 1000 notifications in 10 s", n)
		}
	})
}

// TestCheckBeforeTheTagIsMoved: a registry that tells of a push too early is looked at
// again.
func TestCheckBeforeTheTagIsMoved(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 50 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			s := newStandIn()
			synctest.Test(t, func(t *testing.T) {
				r := s.resolver(t, imagewatch.Options{Interval: 24 * time.Hour})
				q := ask(t, owner(), "r.example/app:1")
				w := r.Watch(q, func() {})
				defer w.Stop()
				after(time.Minute)
				before := s.heads.Load()
				r.Check(q.Repository)
				after(late)
				s.digest.Store(sum("pushed"))
				after(10 * time.Second)
				if w.View().Digest != sum("pushed") {
					t.Errorf("not seen: %+v", w.View())
				}
				if n := s.heads.Load() - before; n != 3 {
					t.Errorf("%d requests for a push, want 3", n)
				}
			})
		})
	}
}

// TestCheckForManyAskers: a repository that many watch with one credential is asked once
// for each check, and at most once a second, however many notifications there are.
func TestCheckForManyAskers(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Interval: 24 * time.Hour})
		q := ask(t, owner(), "r.example/app:1")
		for i := range 500 {
			q.Asker = fmt.Sprint(i)
			defer r.Watch(q, func() {}).Stop()
		}
		after(time.Minute)
		before := s.heads.Load()
		for range 1000 {
			if !r.Check(q.Repository) {
				t.Fatal("the repository is not watched")
			}
			after(10 * time.Millisecond)
		}
		if n := s.heads.Load() - before; n < 10 || n > 12 {
			t.Errorf("%d requests for 1000 notifications in 10 s", n)
		}
		if r.Check(ask(t, owner(), "r.example/app-2:1").Repository) || r.Check(ask(t, owner(), "r.example/ap:1").Repository) {
			t.Error("a repository counts as watched that is not")
		}
	})
}

// TestCheckDuringACheck: a push that comes while the registry is being asked is seen, too.
func TestCheckDuringACheck(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Interval: 24 * time.Hour})
		q := ask(t, owner(), "r.example/app:1")
		w := r.Watch(q, func() {})
		defer w.Stop()
		after(time.Minute)
		s.spoil = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", s.digest.Load().(string))
			time.Sleep(5 * time.Second)
			return true
		}
		r.Check(q.Repository)
		after(2 * time.Second)
		s.digest.Store(sum("pushed"))
		r.Check(q.Repository)
		after(9 * time.Second)
		if w.View().Digest != sum("pushed") {
			t.Errorf("after the second check: %+v", w.View())
		}
		after(time.Minute) // until nothing is asked any more
	})
}

// TestCheckWhileLimited: notifications neither break a rate limit nor make the pause
// longer that follows it.
func TestCheckWhileLimited(t *testing.T) {
	t.Parallel()
	s := newStandIn()
	var limited atomic.Bool
	s.spoil = func(w http.ResponseWriter, _ *http.Request) bool {
		if limited.Load() {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return limited.Load()
	}
	synctest.Test(t, func(t *testing.T) {
		r := s.resolver(t, imagewatch.Options{Interval: 24 * time.Hour})
		q := ask(t, owner(), "r.example/app:1")
		w := r.Watch(q, func() {})
		defer w.Stop()
		after(time.Minute)
		limited.Store(true)
		s.digest.Store(sum("pushed"))
		before := s.heads.Load()
		for range 20 {
			r.Check(q.Repository)
			after(2 * time.Second)
		}
		if n := s.heads.Load() - before; n != 1 {
			t.Errorf("%d requests while the registry wants to be left alone", n)
		}
		limited.Store(false)
		after(30 * time.Second)
		if w.View().Digest != sum("pushed") {
			t.Errorf("after the time: %+v", w.View())
		}
	})
}
