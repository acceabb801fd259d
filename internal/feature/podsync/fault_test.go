package podsync_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/feature/podsync"
)

// status is what the agent wrote beside the data.
func (w *world) status(t *testing.T) podsync.Status {
	t.Helper()
	raw, err := w.ReadState(podsync.StatusFile)
	var s podsync.Status
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) leave(t *testing.T, s podsync.State, current string) {
	t.Helper()
	raw, err := json.Marshal(podsync.Status{State: s})
	if err == nil {
		err = errors.Join(w.Mounted.WriteState(podsync.StatusFile, raw), w.Mounted.Publish(current))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func wantDegraded(t *testing.T, agent *podsync.Agent, want string) {
	t.Helper()
	if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_degraded "+want+"\n") {
		t.Errorf("degraded is not %s:\n%s", want, metrics)
	}
}

// id is the name that a content gets.
func id(t *testing.T, content string) string {
	t.Helper()
	w := newWorld()
	_, put := run(t, w, nil)
	put(content)
	synctest.Wait()
	return w.published[0]
}

func rollBack(o *podsync.Options) {
	o.Timing.RollBack, o.Timing.MaxFailures = true, 2
}

// A child that ends while it is asked has answered, however long asking may
// take: its set is taken back and it runs again.
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

// Going back to the old content clears a refused or rolled back one, which gets
// a new chance when it comes again.
func TestContentThatIsTakenBack(t *testing.T) {
	t.Run("after a refused check", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			agent, put := run(t, w, nil)
			put("good")
			synctest.Wait()
			w.check = func(string) error { return errors.New("line 3 is wrong") }
			put("bad")
			synctest.Wait()
			wantDegraded(t, agent, "1")
			put("good")
			synctest.Wait()
			wantDegraded(t, agent, "0")
			if s := w.status(t); s.Rejected != "" || s.CheckOutput != "" || s.Message != "" {
				t.Errorf("status %+v", s)
			}
		})
	})
	t.Run("after a roll-back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.confirm = func() error { return nil }
			agent, put := run(t, w, rollBack)
			put("good")
			synctest.Wait()
			w.confirm = func() error {
				if w.published[len(w.published)-1] == w.published[0] {
					return nil
				}
				return errors.New("not taken")
			}
			put("bad")
			time.Sleep(time.Minute)
			synctest.Wait()
			wantDegraded(t, agent, "1")
			put("good")
			synctest.Wait()
			wantDegraded(t, agent, "0")
			w.confirm = func() error { return nil }
			put("bad")
			synctest.Wait()
			if len(w.published) != 4 || w.status(t).Confirmed != w.published[1] {
				t.Errorf("published %v, status %+v", w.published, w.status(t))
			}
		})
	})
}

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
		w.tell = func(int) error {
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
		w.tell = func(int) error { return answer }
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
			w.tell = gone
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
				w.tell = gone
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
				w.leave(t, podsync.State{Published: bad, Previous: good, Failures: 2, Barred: bad}, current)
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

// A change that arrives while a set is published waits for its own quiet period.
func TestQuietAfterABusyPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, func(o *podsync.Options) { o.Timing.Quiet, o.Timing.MaxWait = 2*time.Second, 10*time.Second })
		put("0")
		synctest.Wait()
		w.publish = func(string) error {
			w.publish = func(string) error { return nil }
			put("half of 2")
			return nil
		}
		put("1")
		time.Sleep(3 * time.Second)
		put("2")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if len(w.published) != 3 {
			t.Errorf("%d sets were published: half a burst was one of them", len(w.published))
		}
	})
}

// A one-shot agent whose set is refused ends with the reason, also when an
// older set is in place; and it neither tells nor waits for a barred one.
func TestOnceOnAUsedVolume(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(w *world, old, observed string)
		state   func(old, observed string) podsync.State
		wantErr string
	}{
		"refused":     {spoil: func(w *world, _, _ string) { w.check = func(string) error { return errors.New("line 3") } }, wantErr: "line 3"},
		"unpublished": {spoil: func(w *world, _, _ string) { w.publish = func(string) error { return errors.New("disk full") } }, wantErr: "disk full"},
		"barred": {state: func(old, observed string) podsync.State {
			return podsync.State{Published: old, Previous: old, Delivered: old, Barred: observed}
		}},
		"undelivered": {
			spoil: func(w *world, _, observed string) {
				_ = w.Mounted.Publish(observed)
				w.tell = func(int) error { return errors.New("told") }
			},
			state: func(_, observed string) podsync.State { return podsync.State{Published: observed} },
		},
		"in place, passed by another check": {
			spoil: func(w *world, _, observed string) {
				_ = w.Mounted.Publish(observed)
				w.check = func(string) error { return errors.New("line 4") }
			},
			state: func(_, observed string) podsync.State {
				return podsync.State{Published: observed, Checked: observed, CheckedBy: "another"}
			},
			wantErr: "line 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, observed := id(t, "old"), id(t, "new")
				w := newWorld()
				w.complete[old] = true
				state := podsync.State{Published: old, Delivered: old}
				if c.state != nil {
					state = c.state(old, observed)
				}
				w.leave(t, state, state.Published)
				if c.spoil != nil {
					c.spoil(w, old, observed)
				}
				agent, put := join(t, w, func(o *podsync.Options) { o.Once, o.InitialNotify = true, podsync.NotifyIfChanged })
				put("new")
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := agent.Run(ctx)
				if ctx.Err() != nil {
					t.Fatal("it never ends")
				}
				if (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
					t.Errorf("error %v, want %q", err, c.wantErr)
				}
				if len(w.told) > 0 {
					t.Errorf("told %v", w.told)
				}
			})
		})
	}
}

// A status file that could not be written is written when it can be, although
// nothing else happens.
func TestStatusIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		full := true
		w.write = func() error {
			if full {
				return errors.New("no space left")
			}
			return nil
		}
		_, put := run(t, w, nil)
		put("1")
		time.Sleep(time.Minute)
		if n := strings.Count(w.log.String(), "the status file cannot be written"); n != 1 {
			t.Errorf("said %d times", n)
		}
		full = false
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.status(t); s.Confirmed != w.published[0] {
			t.Errorf("status %+v", s)
		}
	})
}
