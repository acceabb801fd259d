package podsync_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// A set that was told of and not confirmed when the agent was killed is told of
// again: what the application looked like before is not known any more.
func TestKilledBetweenTellingAndAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := id(t, "good"), id(t, "bad")
		w := newWorld()
		w.complete = map[string]bool{good: true, bad: true}
		workers := 1
		w.notify = func(int) error {
			if w.notified[len(w.notified)-1] == good {
				workers++ // a set that it refuses leaves it as it is
			}
			return nil
		}
		w.baseline = func() (string, error) { return strconv.Itoa(workers), nil }
		w.compare = func(baseline string) error {
			if baseline == strconv.Itoa(workers) {
				return errors.New("no new worker process appeared")
			}
			return nil
		}
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: bad, Previous: good}, Answers: podsync.Answers{Delivered: bad, Confirmed: good}}, bad)
		_, put := run(t, w, func(o *podsync.Options) {
			rollBack(o)
			o.InitialNotify = podsync.NotifyIfChanged
		})
		put("bad")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); s.Published != good || s.Confirmed != good || s.Barred != bad {
			t.Errorf("told %v, status %+v", w.notified, s)
		}
	})
}

// A question before telling that cannot be put is an application that starts; one
// that is wrong counts at once.
func TestABaselineThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"starting": {&podsync.UnreachableError{Err: errors.New("no worker processes yet")}, http.StatusOK},
		"wrong":    {errors.New("2 processes match"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.confirm = func() error { return nil }
				w.baseline = func() (string, error) { return "", c.err }
				agent, put := run(t, w, nil)
				put("1")
				time.Sleep(time.Minute)
				synctest.Wait()
				wantProbe(t, agent, "/healthz/application", c.want)
				wantDegraded(t, agent, "1")
			})
		})
	}
}
