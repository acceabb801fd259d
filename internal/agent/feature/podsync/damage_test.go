package podsync_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// staying is an agent that tells only of what changed, a second after it did.
func staying(o *podsync.Options) {
	o.InitialNotify, o.Timing.Quiet = podsync.NotifyIfChanged, time.Second
}

// Files that another program changed while the agent was down are put back, and the
// application is told: it may have read them.
func TestDriftAtAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := id(t, "good")
		w := newWorld()
		w.complete[good] = true
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: good}, Answers: podsync.Answers{Delivered: good, Confirmed: good}}, good)
		w.verify = func(string) error { return errors.New("another program changed its files") }
		agent, put := run(t, w, staying)
		put("good")
		synctest.Wait()
		wantDegraded(t, agent, "1")
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(w.published, []string{good}) || !slices.Equal(w.notified, []string{good}) {
			t.Errorf("published %v, told %v", w.published, w.notified)
		}
		if n := w.said("the published files have changed: another program changed its files"); n != 1 {
			t.Errorf("said %d times", n)
		}
		wantDegraded(t, agent, "0")
		wantStatus(t, w, podsync.InStep, 1, 4)
	})
}

// Nothing is told or published after a start on files that are as they were.
func TestNoDriftAtAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := id(t, "good")
		w := newWorld()
		w.complete[good] = true
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: good}, Answers: podsync.Answers{Delivered: good, Confirmed: good}}, good)
		_, put := run(t, w, staying)
		put("good")
		time.Sleep(time.Second)
		synctest.Wait()
		if len(w.published) > 0 || len(w.notified) > 0 {
			t.Errorf("published %v, told %v", w.published, w.notified)
		}
	})
}

// A one-shot agent puts them back as well.
func TestDriftBeforeAOneShot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := id(t, "good")
		w := newWorld()
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: good}, Answers: podsync.Answers{Delivered: good}}, good)
		w.verify = func(string) error { return errors.New("another program changed its files") }
		_, put := run(t, w, func(o *podsync.Options) { o.Once = true })
		put("good")
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(w.published, []string{good}) {
			t.Errorf("published %v", w.published)
		}
	})
}

// A publish that fails half-way and cannot be rolled back leaves files of two sets.
// Sources that go back to the published content do not make that permission: it is said
// until the set is whole again.
func TestFilesOfTwoSetsAreNotInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, nil)
		put("good")
		synctest.Wait()
		w.publish = func(string) error { return errors.New("no space left") }
		w.verify = func(string) error { return errors.New("the root contains files of several sets") }
		put("new")
		time.Sleep(time.Second)
		put("good")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); s.Reason != podsync.Rejected || s.Message != "no space left" || s.Observed != s.Published {
			t.Errorf("status %+v", s)
		}
		wantDegraded(t, agent, "1")
		if n := len(w.published); n < 4 || n > 14 {
			t.Errorf("published %d times in a minute", n)
		}
		told := len(w.notified)

		w.change(func() { w.publish = func(string) error { return nil } })
		time.Sleep(time.Minute)
		synctest.Wait()
		wantDegraded(t, agent, "0")
		wantStatus(t, w, podsync.InStep, 1, 4)
		if len(w.notified) != told+1 {
			t.Errorf("told %v", w.notified)
		}
	})
}

// A publish that fails after the swap leaves the new set in place. Sources that go
// back to the old one have it published again.
func TestAPublishThatFailsAfterTheSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, nil)
		put("good")
		synctest.Wait()
		w.publish = func(id string) error {
			return errors.Join(w.Mounted.Publish(id), errors.New("a file could not be kept"))
		}
		put("new")
		synctest.Wait()
		w.publish = func(string) error { return nil }
		put("good")
		time.Sleep(time.Second)
		synctest.Wait()
		if current, _ := w.Current(); current != w.published[0] {
			t.Errorf("%s is in place, published were %v", current, w.published)
		}
		wantStatus(t, w, podsync.InStep, 1, 4)
	})
}

// A set to go back to that another program changed is not gone back to: neither
// after a restart nor by the agent that published it.
func TestADamagedSetIsNotGoneBackTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.notify = func(n int) error {
			if n > 0 && w.published[len(w.published)-1] != w.published[0] {
				return errors.New("refused")
			}
			return nil
		}
		agent, put := run(t, w, rollBack)
		put("good")
		synctest.Wait()
		w.verify = func(string) error { return errors.New("another program changed its files") }
		put("bad")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.published) != 2 {
			t.Errorf("published %v", w.published)
		}
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
	})
}
