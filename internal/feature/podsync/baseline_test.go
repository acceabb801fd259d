package podsync_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
)

// A set that was told of and not confirmed when the agent was killed is told of
// again: what the application looked like before is not known any more.
func TestKilledBetweenTellingAndAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := id(t, "good"), id(t, "bad")
		w := newWorld()
		w.complete = map[string]bool{good: true, bad: true}
		workers := 1
		w.tell = func(int) error {
			if w.told[len(w.told)-1] == good {
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
		w.leave(t, podsync.State{Published: bad, Previous: good, Delivered: bad, Confirmed: good}, bad)
		_, put := run(t, w, func(o *podsync.Options) {
			rollBack(o)
			o.InitialNotify = podsync.NotifyIfChanged
		})
		put("bad")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); s.Published != good || s.Confirmed != good || s.Barred != bad {
			t.Errorf("told %v, status %+v", w.told, s)
		}
	})
}
