package podsync_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

func rollBack(o *podsync.Options) {
	o.Timing.RollBack, o.Timing.MaxFailures = true, 2
}

// A child that ends while it is asked has answered, however long asking may
// take: its set is rolled back and it runs again.
func TestAChildThatEndsWhileItIsAsked(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "later than the window": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.child = &child{}
				w.ask = func(ctx context.Context) error {
					select {
					case <-ctx.Done():
					case <-time.After(30 * time.Second):
					}
					return errors.New("no answer")
				}
				agent, put := run(t, w, rollBack)
				put("good")
				synctest.Wait()
				put("bad")
				synctest.Wait()
				time.Sleep(after)
				w.child.die()
				synctest.Wait()
				if len(w.published) != 3 || w.published[2] != w.published[0] || w.child.starts != 2 {
					t.Fatalf("published %v, started %d times", w.published, w.child.starts)
				}
				wantProbe(t, agent, "/healthz", http.StatusOK)
				wantDegraded(t, agent, "1")
			})
		})
	}
}

// A roll-back that fails is tried again after a pause, also while the child is
// not there.
func TestAFailingRollBackDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.child = &child{}
		agent, put := run(t, w, func(o *podsync.Options) { o.Timing.RollBack, o.Timing.MaxFailures = true, 9 })
		put("good")
		synctest.Wait()
		put("bad")
		synctest.Wait()
		full := true
		w.publish = func(string) error {
			if full && len(w.published) < 100 {
				return errors.New("no space left")
			}
			return nil
		}
		w.child.die()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(w.published); n < 4 || n > 8 {
			t.Fatalf("published %d times in 5 s", n)
		}
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		wantDegraded(t, agent, "1")
		w.mu.Lock()
		full = false
		w.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.child.starts != 2 {
			t.Errorf("the child was started %d times", w.child.starts)
		}
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
	})
}

// An agent whose application is dead and whose roll-back fails for ever ends
// with the application's code: a container without its application helps nobody.
func TestARollBackThatNeverWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.child = &child{}
		agent, put := join(t, w, rollBack)
		ended := make(chan error, 1)
		go func() { ended <- agent.Run(t.Context()) }()
		put("good")
		synctest.Wait()
		put("bad")
		synctest.Wait()
		w.publish = func(string) error { return errors.New("no space left") }
		w.child.die()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-ended:
			if exit, ok := errors.AsType[*podsync.ExitError](err); !ok || exit.Code != 3 {
				t.Errorf("error %v, want the child's code", err)
			}
		default:
			t.Error("it goes on without its application")
		}
	})
}

// Health stays bad from the failures to the proof that the old set is in use.
func TestHealthDuringARollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.confirm = func() error { return nil }
		agent, put := run(t, w, rollBack)
		put("good")
		synctest.Wait()
		w.ask = func(ctx context.Context) error {
			if w.published[len(w.published)-1] != w.published[0] {
				return errors.New("not taken")
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Second):
				return nil
			}
		}
		put("bad")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(w.published) != 3 {
			t.Fatalf("published %v", w.published)
		}
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		time.Sleep(time.Minute)
		synctest.Wait()
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
	})
}

// Killed around the swap of a roll-back: the set that failed stays barred if the
// old one is back, and is rolled back again if it is not.
func TestKilledDuringARollBack(t *testing.T) {
	for name, swapped := range map[string]bool{"after the swap": true, "before the swap": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good, bad := id(t, "good"), id(t, "bad")
				current, want := bad, []string{good}
				if swapped {
					current, want = good, nil
				}
				w := newWorld()
				w.complete = map[string]bool{good: true, bad: true}
				w.confirm = func() error { return nil }
				w.leave(t, podsync.State{Sets: podsync.Sets{Published: bad, Previous: good}, Tries: podsync.Tries{Failures: 2}, Barred: bad}, current)
				agent, put := run(t, w, func(o *podsync.Options) {
					rollBack(o)
					o.InitialNotify = podsync.NotifyIfChanged
				})
				put("bad")
				synctest.Wait()
				s := w.status(t)
				if s.Published != good || s.Barred != bad || s.Confirmed != good || !slices.Equal(w.published, want) {
					t.Errorf("published %v, status %+v", w.published, s)
				}
				wantProbe(t, agent, "/healthz", http.StatusOK)
			})
		})
	}
}

// The intent is on the disk before the swap.
func TestARollBackIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.confirm = func() error { return nil }
		_, put := run(t, w, rollBack)
		put("good")
		synctest.Wait()
		w.confirm = func() error { return errors.New("not taken") }
		var announced podsync.Status
		w.publish = func(id string) error {
			if id == w.published[0] {
				announced = w.status(t)
			}
			return nil
		}
		put("bad")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(w.published) < 3 || announced.Barred != w.published[1] || announced.Previous != w.published[0] {
			t.Errorf("published %v, announced %+v", w.published, announced)
		}
	})
}
