package podsync_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
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

// Going back to the old content clears a refused or rolled back one, which gets
// a new chance when it comes again.
func TestContentThatIsRolledBack(t *testing.T) {
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
			return podsync.State{Sets: podsync.Sets{Published: old, Previous: old}, Answers: podsync.Answers{Delivered: old}, Barred: observed}
		}},
		"undelivered": {
			spoil: func(w *world, _, observed string) {
				_ = w.Mounted.Publish(observed)
				w.notify = func(int) error { return errors.New("told") }
			},
			state: func(_, observed string) podsync.State { return podsync.State{Sets: podsync.Sets{Published: observed}} },
		},
		"in place, passed by another check": {
			spoil: func(w *world, _, observed string) {
				_ = w.Mounted.Publish(observed)
				w.check = func(string) error { return errors.New("line 4") }
			},
			state: func(_, observed string) podsync.State {
				return podsync.State{Sets: podsync.Sets{Published: observed}, Checks: podsync.Checks{Checked: observed, CheckedBy: "another"}}
			},
			wantErr: "line 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, observed := id(t, "old"), id(t, "new")
				w := newWorld()
				w.complete[old] = true
				state := podsync.State{Sets: podsync.Sets{Published: old}, Answers: podsync.Answers{Delivered: old}}
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
				if len(w.notified) > 0 {
					t.Errorf("told %v", w.notified)
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
		var full atomic.Bool
		full.Store(true)
		w.write = func() error {
			if full.Load() {
				return errors.New("no space left")
			}
			return nil
		}
		_, put := run(t, w, nil)
		put("1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.said("cannot write the status file"); n != 1 {
			t.Errorf("said %d times", n)
		}
		full.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.status(t); s.Confirmed != w.published[0] {
			t.Errorf("status %+v", s)
		}
	})
}
