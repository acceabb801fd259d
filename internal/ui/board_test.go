package ui

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// counted is a board that counts how often it reads, and whose cluster can stop to answer.
type counted struct {
	*board

	reads  atomic.Int32
	beats  atomic.Int32
	broken atomic.Pointer[error]
}

func newCounted() *counted {
	c := &counted{board: standInBoard(ask.Status{})}
	c.current, c.asked = nil, time.Time{}
	fails := func() error {
		if err := c.broken.Load(); err != nil {
			return *err
		}
		return nil
	}
	c.status = func(context.Context, ask.Scope, []cluster.Header) (ask.Status, error) {
		c.reads.Add(1)
		return shop(2), fails()
	}
	c.beat = func(context.Context) error {
		c.beats.Add(1)
		return fails()
	}
	return c
}

// start runs the board without watches.
func (c *counted) start(ctx context.Context) {
	go c.keepBeating(ctx)
	go c.loop(ctx)
}

// TestBoardRestsWhileNobodyLooks: a page that was closed costs the cluster nothing.
func TestBoardRestsWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newCounted()
		c.start(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := c.reads.Load(); n != 1 {
			t.Errorf("%d reads before anybody looks, not one", n)
		}
		for range 100 {
			c.changed("shop", true)
			time.Sleep(time.Second)
		}
		if reads, beats := c.reads.Load(), c.beats.Load(); reads != 1 || beats != 0 {
			t.Errorf("%d reads and %d beats while nobody looks", reads, beats)
		}
		if s, err := c.get(ctx); err != nil || len(s.entries) != 3 {
			t.Errorf("the first look gets %v, %v", s, err)
		}
		if n := c.reads.Load(); n != 2 {
			t.Errorf("the first look after a while gets what was read long ago: %d reads", n)
		}
		_, _ = c.get(ctx)
		if n := c.reads.Load(); n != 2 {
			t.Errorf("the next look waits for the cluster: %d reads", n)
		}
	})
}

// TestBoardGathers: a burst of changes is read once, and soon; a busy cluster isn't read all the time.
func TestBoardGathers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newCounted()
		_, stop := c.listen()
		defer stop()
		c.start(ctx)
		time.Sleep(time.Second)
		before := c.reads.Load()
		for range 50 {
			c.changed("shop", true)
		}
		time.Sleep(gather + time.Millisecond)
		synctest.Wait()
		if n := c.reads.Load() - before; n != 1 {
			t.Errorf("50 changes at once: %d reads", n)
		}
		before = c.reads.Load()
		for range 1000 {
			c.changed("shop", true)
			time.Sleep(time.Millisecond)
		}
		if n := c.reads.Load() - before; n < 5 || n > 11 {
			t.Errorf("a second of changes: %d reads", n)
		}
		time.Sleep(time.Second) // the last of them
		before = c.reads.Load()
		c.changed("shop", false)
		time.Sleep(refreshEvery / 2)
		if n := c.reads.Load() - before; n != 0 {
			t.Errorf("what doesn't matter for the overview: %d reads", n)
		}
		time.Sleep(refreshEvery)
		if c.reads.Load() == before {
			t.Error("the status gets old")
		}
	})
}

// TestBoardNoticesAnOutage: within five seconds, with either way of not answering, and its end.
func TestBoardNoticesAnOutage(t *testing.T) {
	t.Parallel()
	down := error(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	for name, err := range map[string]error{"Down": down, "Hangs": context.DeadlineExceeded, "Starting": apierrors.NewServiceUnavailable("")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := newCounted()
				l, stop := c.listen()
				defer stop()
				c.narrow(l, page{namespace: "shop"})
				c.start(ctx)
				time.Sleep(time.Second)
				if c.gone() != "" {
					t.Fatal("it is gone before that")
				}
				c.broken.Store(&err)
				time.Sleep(5 * time.Second)
				if c.gone() == "" {
					t.Error("an outage isn't noticed")
				}
				select {
				case <-l.changed:
				default:
					t.Error("the page isn't told")
				}
				if s, err := c.get(ctx); err != nil || len(s.entries) != 3 {
					t.Errorf("the last status is lost: %v", err)
				}
				c.broken.Store(nil)
				time.Sleep(5 * time.Second)
				if c.gone() != "" {
					t.Error("it is still gone:", c.gone())
				}
			})
		})
	}
}

// TestBoardTakesRefusalsForAnswers: a missing permission isn't an outage.
func TestBoardTakesRefusalsForAnswers(t *testing.T) {
	t.Parallel()
	b := standInBoard(ask.Status{})
	for _, answer := range []error{
		apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, settings.StopName),
		apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, settings.StopName, errors.New("no role")),
	} {
		if b.heard(answer); b.gone() != "" {
			t.Errorf("%v is taken for an outage", answer)
		}
	}
}

// TestFirstLookWithoutACluster: the page doesn't wait longer than it has to.
func TestFirstLookWithoutACluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := newCounted()
		down := error(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
		c.broken.Store(&down)
		c.start(ctx)
		within, end := context.WithTimeout(ctx, patience)
		defer end()
		if _, err := c.get(within); err == nil || !isUnanswered(err) {
			t.Errorf("without a cluster there is a status: %v", err)
		}
	})
}

func metadata(writer string, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid", Annotations: annotations,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: writer}},
	}}
}

// TestWatchesKeepHeaders: what the status depends on, and whom a change concerns.
func TestWatchesKeepHeaders(t *testing.T) {
	t.Parallel()
	type told struct {
		namespace string
		decides   bool
	}
	var heard []told
	w := standInBoard(ask.Status{}).watches
	w.changed = func(namespace string, decides bool) { heard = append(heard, told{namespace, decides}) }
	kind := kube.Deployment()
	m := w.mirrorOf(kind)
	w.mirrors[kind.GroupKind()] = m
	if _, _, whole, _ := w.headers(); whole {
		t.Error("a list that didn't arrive counts as whole")
	}
	annotations := map[string]string{settings.Prefix + "reload": "auto", "other": "large"}
	if err := m.Replace([]any{metadata("1", annotations)}, "1"); err != nil {
		t.Fatal(err)
	}
	all, notes, whole, err := w.headers()
	if err != nil || !whole || len(notes) > 0 || len(all) != 1 || all[0].Key.Name != "web" || len(all[0].Annotations) != 1 {
		t.Errorf("headers %+v, notes %v, whole %t: %v", all, notes, whole, err)
	}
	expect := func(reason string, want told) {
		t.Helper()
		if len(heard) == 0 || heard[len(heard)-1] != want {
			t.Errorf("%s: told %+v, not %+v", reason, heard, want)
		}
		heard = nil
	}
	expect("a new workload", told{"shop", true})
	_ = m.Update(metadata("2", annotations))
	expect("its status or template", told{"shop", false})
	_ = m.Update(metadata("2", map[string]string{settings.Prefix + "reload": "off"}))
	if len(heard) == 0 || heard[0] != (told{"shop", true}) {
		t.Errorf("its settings: told %+v", heard)
	}
	heard = nil
	_ = m.Delete(metadata("3", nil))
	expect("its deletion", told{"shop", true})
}

// TestAnswersOfKinds: a kind whose webhook fails doesn't make the whole cluster look gone, and a proxy
// that answers in the cluster's place does.
func TestAnswersOfKinds(t *testing.T) {
	t.Parallel()
	rollouts := schema.GroupResource{Group: "argoproj.io", Resource: "rollouts"}
	code := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "list", rollouts, "", "no", 0, true)
	}
	for name, tc := range map[string]struct {
		err            error
		answer, unsure bool
	}{
		"Forbidden": {apierrors.NewForbidden(rollouts, "", nil), true, false},
		"Webhook":   {code(http.StatusInternalServerError), true, true},
		"Proxy":     {code(http.StatusBadGateway), false, true},
		"Starting":  {code(http.StatusServiceUnavailable), false, true},
	} {
		if isAnswer(tc.err) != tc.answer || isUnanswered(tc.err) != tc.unsure {
			t.Errorf("%s: an answer: %t, a page is out of date: %t", name, isAnswer(tc.err), isUnanswered(tc.err))
		}
	}
}
