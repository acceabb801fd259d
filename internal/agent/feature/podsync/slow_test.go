package podsync_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// limit is how long the slow application's answer is waited for at a time.
const limit = time.Second

// slow has the application take the request and answer after a while; for ever
// means never.
func (w *world) slow(after time.Duration, answer error) {
	w.answers(func(int) error {
		late := make(chan error, 1)
		if after != forever {
			time.AfterFunc(after, func() { late <- answer })
		}
		w.abandoned = false
		return &podsync.UnansweredError{
			Err: errors.New("not answered within 1s"), Patience: limit, Answer: late, Abandon: func() { w.abandoned = true },
		}
	})
}

// answers sets what the application answers from now on, while the agent runs.
func (w *world) answers(tell func(n int) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify = tell
}

const forever = time.Duration(-1)

// A reload that takes longer than its time limit is one that the application was
// told of: it is not told again while it works, and its answer counts.
func TestASlowReload(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		confirm func() error
	}{
		"nobody is asked": {reason: "the late answer is the application's word"},
		"asked":           {reason: "the question comes after the answer", confirm: func() error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				agent, put := start(t, w, c.confirm)
				w.slow(6*limit, nil) // before the change: the agent may notify at once
				put("slow")
				time.Sleep(5 * limit)
				synctest.Wait()
				if s := w.status(t); s.Confirmed == s.Published || s.Unanswered != s.Published {
					t.Errorf("%s: confirmed before the application has answered: %+v", c.reason, s)
				}
				time.Sleep(5 * limit)
				synctest.Wait()
				if s := w.status(t); s.Confirmed != s.Published || s.Reason != podsync.InStep || s.Failures != 0 || s.Unanswered != "" {
					t.Errorf("%s: status %+v", c.reason, s)
				}
				wantProbe(t, agent, "/healthz", http.StatusOK)
				if len(w.notified) != 2 || len(w.published) != 2 {
					t.Errorf("told %v, published %v: want the first and the slow one once each", w.notified, w.published)
				}
			})
		})
	}
}

// start runs an agent that rolls back, with a good set in place.
func start(t *testing.T, w *world, confirm func() error) (*podsync.Agent, func(string)) {
	t.Helper()
	w.confirm = confirm
	agent, put := run(t, w, func(o *podsync.Options) { o.Timing.RollBack, o.Timing.MaxFailures = true, 5 })
	put("good")
	synctest.Wait()
	return agent, put
}

// A reload that hangs turns health red in the time that as many refusals would
// take, and a late yes turns it green. A set is not rolled back for being slow.
func TestAHangingReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := start(t, w, nil)
		w.slow(10*time.Minute, nil)
		put("hangs")
		promised := 5*limit + (500+1000+2000+4000)*time.Millisecond // five tries and the pauses between them
		time.Sleep(promised)
		synctest.Wait()
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		if len(w.notified) != 2 || len(w.published) != 2 {
			t.Errorf("told %v, published %v: nothing is sent again or rolled back", w.notified, w.published)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
		if len(w.notified) != 2 || len(w.published) != 2 {
			t.Errorf("told %v, published %v", w.notified, w.published)
		}
	})
}

// A late no is a no: the set is rolled back at once when there were enough waits
// before it.
func TestALateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := start(t, w, nil)
		w.slow(30*time.Second, errors.New("answered 500"))
		put("bad")
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if len(w.published) != 2 {
			t.Fatalf("published %v before the answer", w.published)
		}
		w.answers(func(int) error { return nil })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(w.published) != 3 || w.published[2] != w.published[0] {
			t.Errorf("published %v, want the first set again", w.published)
		}
	})
}

// After a late yes the waits are not held against the set: one question that
// fails is one failure.
func TestAQuestionAfterALateYes(t *testing.T) {
	for name, arrange := range map[string]func(w *world, ask func() error){
		"asked":               func(w *world, ask func() error) { w.confirm = ask },
		"asked while at work": func(w *world, ask func() error) { w.compare = func(string) error { return ask() } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var ask func() error
				arrange(w, func() error {
					if ask != nil {
						return ask()
					}
					return nil
				})
				_, put := start(t, w, w.confirm)
				answered := time.Now().Add(30 * time.Second)
				w.slow(30*time.Second, nil)
				ask = func() error {
					if time.Now().Before(answered.Add(2 * limit)) {
						return errors.New("not yet")
					}
					return nil
				}
				put("slow")
				time.Sleep(29 * time.Second)
				synctest.Wait()
				w.answers(func(int) error { return nil })
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := w.status(t); len(w.published) != 2 || s.Confirmed != s.Published || s.Failures != 0 {
					t.Errorf("told %v, published %v, status %+v", w.notified, w.published, s)
				}
			})
		})
	}
}

// A question that compares with before is put while the application works, and
// its yes counts although the request is still open.
func TestASlowReloadIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		asked := 0
		w.compare = func(string) error {
			time.Sleep(limit)
			if asked++; asked < 3 {
				return errors.New("not yet")
			}
			return nil
		}
		_, put := run(t, w, nil)
		w.slow(forever, nil)
		put("slow")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); s.Confirmed != s.Published || len(w.notified) != 1 || asked != 3 || !w.abandoned {
			t.Errorf("told %v, asked %d times, abandoned %v, status %+v", w.notified, asked, w.abandoned, s)
		}
	})
}

// Something newer is told at once: only the newest set matters.
func TestNewerContentWhileTheApplicationWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := start(t, w, nil)
		w.slow(forever, nil)
		put("slow")
		time.Sleep(3 * limit)
		w.answers(func(int) error { return nil })
		put("newer")
		time.Sleep(3 * limit)
		synctest.Wait()
		if s := w.status(t); s.Confirmed != s.Published || len(w.notified) != 3 || !w.abandoned {
			t.Errorf("told %v, abandoned %v, status %+v", w.notified, w.abandoned, s)
		}
	})
}

// An agent that starts again while the application works does not know of its
// request any more, and tells again.
func TestARestartWhileTheApplicationWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		one := id(t, "1")
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: one}, Answers: podsync.Answers{Delivered: one, Unanswered: one}, Tries: podsync.Tries{Failures: 1}}, one)
		_, put := run(t, w, func(o *podsync.Options) { o.InitialNotify = podsync.NotifyIfChanged })
		put("1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); len(w.notified) != 1 || s.Confirmed != one || s.Unanswered != "" {
			t.Errorf("told %v, status %+v", w.notified, s)
		}
	})
}

// Waits of an earlier process are not held against the set, and nobody is asked
// who was not told by this one.
func TestARestartDuringASlowReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, asked := newWorld(), 0
		w.confirm = func() error {
			if asked++; len(w.notified) == 0 {
				return errors.New("runs the set before")
			}
			return nil
		}
		one, two := id(t, "1"), id(t, "2")
		w.leave(t, podsync.State{Sets: podsync.Sets{Published: two, Previous: one}, Answers: podsync.Answers{Delivered: two, Unanswered: two}, Tries: podsync.Tries{Failures: 7}}, two)
		_, put := run(t, w, func(o *podsync.Options) {
			o.InitialNotify, o.Timing.RollBack, o.Timing.MaxFailures = podsync.NotifyIfChanged, true, 5
		})
		put("2")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.status(t); len(w.notified) != 1 || asked != 1 || s.Confirmed != two || s.Published != two || s.Failures != 0 {
			t.Errorf("told %v, asked %d times, published %v, status %+v", w.notified, asked, w.published, s)
		}
	})
}

// What a failing command printed is in the status file, and nowhere else.
func TestWhatACommandPrinted(t *testing.T) {
	const secret = "line-with-password"
	printed := func() error {
		return &podsync.OutputError{Output: "config:3: " + secret, Err: errors.New("run app: exit status 1")}
	}
	for name, arrange := range map[string]func(*world){
		"to tell": func(w *world) { w.notify = func(int) error { return printed() } },
		"to ask":  func(w *world) { w.confirm = printed },
		"wrapped": func(w *world) { w.confirm = func() error { return fmt.Errorf("not confirmed: %w", printed()) } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				arrange(w)
				agent, put := run(t, w, nil)
				put("1")
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := w.status(t); !strings.Contains(s.Output, secret) || strings.Contains(s.Message, secret) {
					t.Errorf("output %q, message %q", s.Output, s.Message)
				}
				for _, path := range []string{"/healthz", "/readyz", "/startupz", "/metrics"} {
					if _, body := probe(agent, path); strings.Contains(body, secret) {
						t.Errorf("%s shows what the command printed:\n%s", path, body)
					}
				}
				if strings.Contains(w.log.String(), secret) || !strings.Contains(w.log.String(), "exit status 1") {
					t.Errorf("the log is\n%s", w.log.String())
				}
			})
		})
	}
}
