package podsync_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// world is an application and a disk that live in memory, in the bubble's time.
type world struct {
	*volume.Mounted

	files      sync.Mutex
	mu         sync.Mutex
	complete   map[string]bool
	published  []string
	notified   []string
	notifiedAt []time.Time
	notify     func(n int) error
	confirm    func() error
	ask        func(ctx context.Context) error // instead of confirm
	baseline   func() (string, error)
	compare    func(baseline string) error // instead of confirm
	pruned     int
	abandoned  bool
	check      func(id string) error
	publish    func(id string) error
	write      func() error
	verify     func(id string) error
	obstacles  map[string]error
	child      *child
	log        strings.Builder
}

// child is an application in subprocess mode.
type child struct {
	mu     sync.Mutex
	starts int
	done   chan struct{}
}

func (c *child) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts++
	c.done = make(chan struct{})
	return nil
}

func (c *child) Running() bool {
	select {
	case <-c.Done():
		return false
	default:
		return true
	}
}

func (c *child) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

func (c *child) ExitCode() int { return 3 }
func (c *child) die()          { close(c.done) }

func newWorld() *world {
	return &world{
		Mounted: volume.NewMounted("/live"), complete: map[string]bool{},
		notify: func(int) error { return nil }, check: func(string) error { return nil },
		publish: func(string) error { return nil }, write: func() error { return nil },
		baseline: func() (string, error) { return "", nil }, verify: func(string) error { return nil },
	}
}

func (w *world) Has(id string) bool { return w.complete[id] }

func (w *world) Obstacles(filemap.Tree) map[string]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.obstacles
}

// change makes the world different while an agent runs in it.
func (w *world) change(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

func (w *world) Verify(id string) error { return w.verify(id) }

func (w *world) Stage(id string, _ filemap.Tree) (string, error) {
	w.complete[id] = true
	return "/staged/" + id, nil
}

func (w *world) Publish(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, id)
	if err := w.publish(id); err != nil {
		return err
	}
	return w.Mounted.Publish(id)
}

func (w *world) WriteState(name string, content []byte) error {
	w.files.Lock()
	defer w.files.Unlock()
	if err := w.write(); err != nil {
		return err
	}
	return w.Mounted.WriteState(name, content)
}

func (w *world) ReadState(name string) ([]byte, error) {
	w.files.Lock()
	defer w.files.Unlock()
	return w.Mounted.ReadState(name)
}

func (w *world) Keep(value []byte) (filemap.Digest, error) { return sha256.Sum256(value), nil }

func (w *world) Check(_ context.Context, r podsync.Delivery) (string, error) {
	return "checked " + r.Dir, w.check(r.Generation)
}

func (w *world) Notify(_ context.Context, r podsync.Delivery) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, r.Generation)
	w.notifiedAt = append(w.notifiedAt, time.Now())
	return true, w.notify(len(w.notified))
}

func (w *world) Baseline(context.Context) (string, error) { return w.baseline() }

func (w *world) Write(p []byte) (int, error) {
	w.files.Lock()
	defer w.files.Unlock()
	return w.log.Write(p)
}

// said is how often the log has some words.
func (w *world) said(words string) int {
	w.files.Lock()
	defer w.files.Unlock()
	return strings.Count(w.log.String(), words)
}

func (w *world) Compares() bool { return w.compare != nil }

func (w *world) Confirm(ctx context.Context, _ podsync.Delivery, baseline string) error {
	switch {
	case w.ask != nil:
		return w.ask(ctx)
	case w.compare != nil:
		return w.compare(baseline)
	}
	return w.confirm()
}

func (w *world) Prune(keep []string, live func() map[filemap.Digest]bool) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pruned++
	return w.Mounted.Prune(keep, live)
}

const source = "configmap/ns/app"

// run starts an agent in the bubble. The returned function gives the source a
// new content.
func run(t *testing.T, w *world, change func(*podsync.Options)) (*podsync.Agent, func(content string)) {
	t.Helper()
	agent, put := join(t, w, change)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return agent, put
}

// join makes an agent that does not run yet.
func join(t *testing.T, w *world, change func(*podsync.Options)) (*podsync.Agent, func(content string)) {
	t.Helper()
	opts := podsync.DefaultOptions()
	opts.Sources = []podsync.Source{{Name: source, Named: true}}
	opts.InitialNotify = podsync.NotifyAlways
	opts.Timing.Quiet = 0
	if change != nil {
		change(&opts)
	}
	parts := podsync.Parts{
		Publisher: w, States: w, Checker: w, Notifiers: []podsync.Notifier{w}, Log: slog.New(slog.NewTextHandler(w, nil)),
		Now: time.Now, Jitter: func() float64 { return 0 },
	}
	if w.confirm != nil || w.ask != nil || w.compare != nil {
		parts.Confirmer = w
	}
	if w.child != nil {
		parts.Child = w.child
	}
	agent, err := podsync.New(opts, parts, w)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content string) {
		entry := filemap.Entry{Key: "a", Digest: sha256.Sum256([]byte(content)), Size: int64(len(content))}
		agent.Inventory().Replace(source, []filemap.Object{{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "app"}, Entries: []filemap.Entry{entry}}})
	}
	return agent, put
}

func probe(agent *podsync.Agent, path string) (int, string) {
	recorder := httptest.NewRecorder()
	agent.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func wantProbe(t *testing.T, agent *podsync.Agent, path string, want int) {
	t.Helper()
	if code, body := probe(agent, path); code != want {
		t.Errorf("%s: %d %s, want %d", path, code, body, want)
	}
}

// Events of an unchanged object are no change: labels, resyncs, relists.
func TestMetadataOnlyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, nil)
		put("1")
		synctest.Wait()
		for range 5 {
			put("1")
			time.Sleep(time.Minute)
		}
		if len(w.notified) != 1 || len(w.published) != 1 {
			t.Errorf("published %v, told %v", w.published, w.notified)
		}
	})
}

// A burst is one reload with the latest content, and reloads keep their
// distance.
func TestBurstAndMinimumInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, func(o *podsync.Options) { o.Timing.MinInterval = 10 * time.Second })
		put("0")
		synctest.Wait()
		for i := range 30 {
			put(fmt.Sprint("edit ", i))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.notified) != 2 {
			t.Fatalf("told %d times", len(w.notified))
		}
		if gap := w.notifiedAt[1].Sub(w.notifiedAt[0]); gap != 10*time.Second {
			t.Errorf("%s between two reloads", gap)
		}
	})
}

// Sources that never rest are delivered after the longest wait.
func TestQuietPeriodIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, func(o *podsync.Options) { o.Timing.Quiet, o.Timing.MaxWait = time.Second, 5*time.Second })
		put("0")
		synctest.Wait()
		for i := range 200 {
			put(fmt.Sprint("edit ", i))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(w.notified) - 1; n < 3 || n > 5 {
			t.Errorf("20 s of edits were %d reloads, want about one in 5 s", n)
		}
	})
}

// A failed reload is tried again until it works; health turns bad after the
// allowed failures and good with the first success.
func TestFailedReloadIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.notify = func(n int) error {
			if n < 9 {
				return errors.New("refused")
			}
			return nil
		}
		agent, put := run(t, w, nil)
		put("1")
		synctest.Wait()
		wantProbe(t, agent, "/healthz", http.StatusOK)
		wantProbe(t, agent, "/startupz", http.StatusOK)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		wantProbe(t, agent, "/healthz", http.StatusServiceUnavailable)
		wantProbe(t, agent, "/healthz/application", http.StatusServiceUnavailable)
		wantProbe(t, agent, "/healthz/source", http.StatusOK)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		wantProbe(t, agent, "/healthz", http.StatusOK)
		if len(w.notified) != 9 {
			t.Errorf("told %d times", len(w.notified))
		}
	})
}

// Something newer does not wait for the retries of the old.
func TestNewerContentReplacesARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.notify = func(n int) error {
			if n < 4 {
				return errors.New("refused")
			}
			return nil
		}
		_, put := run(t, w, func(o *podsync.Options) { o.Timing.Retry, o.Timing.MaxRetry = time.Hour, time.Hour })
		put("1")
		synctest.Wait()
		before := time.Now()
		put("2")
		put("3")
		synctest.Wait()
		if time.Since(before) > time.Second || len(w.notified) < 2 {
			t.Errorf("told %v after %s", w.notified, time.Since(before))
		}
	})
}

// A refused set is not published; its checker is asked again later.
func TestRefusedSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, nil)
		put("good")
		synctest.Wait()
		var resolves atomic.Bool
		w.check = func(string) error {
			if resolves.Load() {
				return nil
			}
			return errors.New("line 3 is wrong")
		}
		put("bad")
		synctest.Wait()
		if len(w.published) != 1 || len(w.notified) != 1 {
			t.Errorf("published %v, told %v", w.published, w.notified)
		}
		wantProbe(t, agent, "/healthz", http.StatusOK)
		if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_degraded 1\n") {
			t.Errorf("metrics\n%s", metrics)
		}
		resolves.Store(true) // a name that did not resolve does so again
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.published) != 2 {
			t.Errorf("published %v", w.published)
		}
	})
}

// Too many failures: the old set is back, confirmed, and health is good.
func TestRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.confirm = func() error { return nil }
		agent, put := run(t, w, func(o *podsync.Options) { o.Timing.RollBack, o.Timing.MaxFailures = true, 3 })
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
		if len(w.published) != 3 || w.published[2] != w.published[0] {
			t.Fatalf("published %v", w.published)
		}
		wantProbe(t, agent, "/healthz", http.StatusOK)
		if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_degraded 1\n") {
			t.Errorf("metrics\n%s", metrics)
		}
		told := len(w.notified)
		time.Sleep(time.Hour)
		if len(w.notified) != told {
			t.Errorf("told %d more times while nothing changed", len(w.notified)-told)
		}
		w.confirm = func() error { return nil }
		put("better")
		synctest.Wait()
		if len(w.published) != 4 {
			t.Errorf("published %v", w.published)
		}
		if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_degraded 0\n") {
			t.Errorf("metrics\n%s", metrics)
		}
	})
}

// An agent that starts again after a roll-back still knows the size of what is in
// place, although the sources hold something else.
func TestSizeAfterARollBackAndARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		state := `{"published":"old","previous":"old","barred":"x","delivered":"old","confirmed":"old","files":3,"bytes":30}`
		if err := w.WriteState(podsync.StatusFile, []byte(state)); err != nil {
			t.Fatal(err)
		}
		if err := w.Mounted.Publish("old"); err != nil {
			t.Fatal(err)
		}
		run(t, w, nil)
		synctest.Wait()
		wantStatus(t, w, podsync.WaitingForSources, 3, 30)
	})
}

// What was read and never published is cleaned up as well: a refused set leaves
// a generation, and a key that is not wanted leaves its content.
func TestCleaningUpAfterEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, put := run(t, w, nil)
		put("good")
		time.Sleep(time.Minute)
		synctest.Wait()
		w.check = func(string) error { return errors.New("line 3 is wrong") }
		for i := range 3 {
			before := w.pruned
			put(fmt.Sprint("refused ", i))
			time.Sleep(time.Minute)
			synctest.Wait()
			if w.pruned != before+1 {
				t.Errorf("after the refused set %d the disk was cleaned up %d times, want once", i, w.pruned-before)
			}
		}
	})
}

func wantStatus(t *testing.T, w *world, reason podsync.Reason, files int, bytes int64) {
	t.Helper()
	raw, err := w.ReadState(podsync.StatusFile)
	if err != nil {
		t.Fatal(err)
	}
	var s podsync.Status
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s.Reason != reason || s.Files != files || s.Bytes != bytes {
		t.Errorf("%s with %d files and %d bytes, want %s with %d and %d", s.Reason, s.Files, s.Bytes, reason, files, bytes)
	}
}
