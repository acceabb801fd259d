package podsync_test

import (
	"errors"
	"net/http"
	"slices"
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

// A restarted agent reads its sources before it notifies the application, which then doesn't load
// the old set first. Without sources it notifies after 10 s.
func TestARestartedSidecarReadsItsSourcesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"sources in time": {after: 9 * time.Second, want: []string{"new"}},
		"sources late":    {after: 11 * time.Second, want: []string{"old", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := map[string]string{id(t, "old"): "old", id(t, "new"): "new"}
				w := newWorld()
				w.complete = map[string]bool{id(t, "old"): true}
				w.leave(t, podsync.State{Sets: podsync.Sets{Published: id(t, "old")}, Answers: podsync.Answers{Delivered: id(t, "old")}}, id(t, "old"))
				_, put := run(t, w, func(o *podsync.Options) { o.Timing.MinInterval = 10 * time.Second })
				time.Sleep(c.after)
				put("new")
				time.Sleep(time.Minute)
				synctest.Wait()
				got := []string{}
				for _, generation := range w.notified {
					got = append(got, names[generation])
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("notified of %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A question before telling that cannot be put is an application that starts; one
// that is wrong counts at once.
func TestABaselineThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"starting": {&podsync.UnreachableError{Err: errors.New("any worker processes yet")}, http.StatusOK},
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
