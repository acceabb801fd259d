package podsync_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// An application that cannot be asked may be starting. It is neither rolled
// back nor unhealthy for that, but it shows.
func TestAnApplicationThatIsStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.confirm = func() error { return nil }
		agent, put := run(t, w, rollBack)
		put("1")
		synctest.Wait()
		up := false
		w.notify = func(int) error {
			if up {
				return nil
			}
			return &podsync.UnreachableError{Err: errors.New("connection refused")}
		}
		put("2")
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		wantProbe(t, agent, "/healthz", http.StatusOK)
		wantDegraded(t, agent, "1")
		if s := w.status(t); len(w.published) != 2 || s.Reason != podsync.Unreachable || s.Message != "connection refused" {
			t.Errorf("published %v, status %+v", w.published, s)
		}
		w.mu.Lock()
		up = true
		w.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		wantDegraded(t, agent, "0")
		if s := w.status(t); s.Confirmed != w.published[1] {
			t.Errorf("status %+v", s)
		}
	})
}

// Bad health makes the kubelet start the application again. From the moment at
// which it is away health is good, or the probe would kill what is starting.
func TestARefusingApplicationThatIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, nil)
		put("1")
		synctest.Wait()
		answer := errors.New("500")
		w.notify = func(int) error { return answer }
		now := func(err error) {
			w.mu.Lock()
			answer = err
			w.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		put("2")
		now(answer)
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		now(&podsync.UnreachableError{Err: errors.New("connection refused")})
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
		wantDegraded(t, agent, "1")
		now(errors.New("500"))
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		now(nil)
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
		wantDegraded(t, agent, "0")
	})
}

// One that never comes is a failure in the end, and one that is gone after it
// was told is one at once.
func TestAnApplicationThatStaysAway(t *testing.T) {
	gone := func(int) error { return &podsync.UnreachableError{Err: errors.New("connection refused")} }
	t.Run("never told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			agent, put := run(t, w, nil)
			w.notify = gone
			put("1")
			time.Sleep(time.Hour)
			synctest.Wait()
			wantProbe(t, agent, "/healthz", http.StatusServiceUnavailable)
		})
	})
	t.Run("told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.confirm = func() error { return nil }
			_, put := run(t, w, rollBack)
			put("good")
			synctest.Wait()
			w.confirm = func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.notify = gone
				return errors.New("connection refused")
			}
			put("deadly")
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(w.published) != 3 || w.published[2] != w.published[0] {
				t.Errorf("published %v", w.published)
			}
		})
	})
}
