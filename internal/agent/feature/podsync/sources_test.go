package podsync_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// A source that cannot be read or stored shows at once, turns its health bad
// after the deadline, and is well again when it recovers.
func TestASourceThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, nil)
		put("1")
		synctest.Wait()
		wantDegraded(t, agent, "0")
		fail := func() { agent.Inventory().Failed(source, errors.New("no space left")) }
		fail()
		synctest.Wait()
		wantDegraded(t, agent, "1")
		wantProbe(t, agent, "/healthz", http.StatusOK)
		time.Sleep(podsync.DefaultOptions().Stall)
		fail() // still, and not anew
		time.Sleep(time.Second)
		synctest.Wait()
		wantProbe(t, agent, "/healthz/source", http.StatusServiceUnavailable)
		wantProbe(t, agent, "/healthz/application", http.StatusOK)
		agent.Inventory().Recovered(source)
		synctest.Wait()
		wantProbe(t, agent, "/healthz/source", http.StatusOK)
		wantDegraded(t, agent, "0")
	})
}

// An agent that starts again and finds a set in place works with it when the
// sources are away, gone or in conflict: that is no first start.
func TestAStartOnAUsedVolume(t *testing.T) {
	for name, c := range map[string]struct {
		sources func(inv *podsync.Inventory, put func(string))
		logged  string
	}{
		"away": {sources: func(*podsync.Inventory, func(string)) {}},
		"gone": {
			sources: func(inv *podsync.Inventory, _ func(string)) {
				inv.Replace(source, nil)
				inv.Replace("other", nil)
			},
			logged: `msg="waiting for a missing source" error="configmap/ns/app not found`,
		},
		"in conflict": {
			sources: func(inv *podsync.Inventory, put func(string)) {
				put("old")
				inv.Replace("other", []filemap.Object{other("a")})
			},
			logged: `msg="the sources conflict; the published set stays" error="configmap/ns/app and`,
		},
	} {
		for _, application := range []*child{nil, {}} {
			t.Run(fmt.Sprintf("%s, child %v", name, application != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, old := newWorld(), id(t, "old")
					w.child = application
					w.leave(t, podsync.State{Sets: podsync.Sets{Published: old}, Answers: podsync.Answers{Delivered: old, Confirmed: old}}, old)
					agent, put := run(t, w, func(o *podsync.Options) {
						o.Sources, o.InitialNotify = append(o.Sources, podsync.Source{Name: "other"}), podsync.NotifyIfChanged
					})
					synctest.Wait()
					wantProbe(t, agent, "/startupz", http.StatusServiceUnavailable)
					c.sources(agent.Inventory(), put)
					time.Sleep(15 * time.Second)
					synctest.Wait()
					wantProbe(t, agent, "/startupz", http.StatusOK)
					wantProbe(t, agent, "/readyz", http.StatusOK)
					wantDegraded(t, agent, "1")
					if c.logged != "" && strings.Count(w.log.String(), c.logged) != 1 {
						t.Errorf("the log is\n%s", w.log.String())
					}
					if application != nil && application.starts != 1 {
						t.Errorf("the child was started %d times", application.starts)
					}
					agent.Inventory().Replace("other", nil)
					put("new")
					synctest.Wait()
					wantDegraded(t, agent, "0")
					if len(w.notified) != 1 || w.status(t).Confirmed != id(t, "new") {
						t.Errorf("told %v, status %+v", w.notified, w.status(t))
					}
				})
			})
		}
	}
}

// Nothing in place and a named object that does not exist: an error, as before.
func TestAStartWithoutItsSource(t *testing.T) {
	for name, c := range map[string]struct {
		published string
		once      bool
	}{
		"on a new volume":           {},
		"one shot on a used volume": {published: "old", once: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.leave(t, podsync.State{Sets: podsync.Sets{Published: c.published}, Answers: podsync.Answers{Delivered: c.published}}, c.published)
				agent, _ := join(t, w, func(o *podsync.Options) { o.Once = c.once })
				agent.Inventory().Replace(source, nil)
				if _, missing := errors.AsType[*podsync.MissingError](agent.Run(t.Context())); !missing {
					t.Error("no error")
				}
			})
		})
	}
}

// In the place of a program that failed fast, a source that can't be read ends the agent, unless
// a set is in place that an application may depend on.
func TestFailFast(t *testing.T) {
	for name, c := range map[string]struct {
		failFast  bool
		published string
		ends      bool
	}{
		"nothing in place":         {failFast: true, ends: true},
		"a set in place":           {failFast: true, published: "old"},
		"without the option, none": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.leave(t, podsync.State{Sets: podsync.Sets{Published: c.published}, Answers: podsync.Answers{Delivered: c.published}}, c.published)
				agent, _ := join(t, w, func(o *podsync.Options) { o.FailFast = c.failFast })
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				time.AfterFunc(time.Second, func() { agent.Inventory().Failed(source, errors.New("list: forbidden")) })
				if err := agent.Run(ctx); (err != nil) != c.ends || (c.ends && err.Error() != "list: forbidden") {
					t.Errorf("the agent ended with %v", err)
				}
			})
		})
	}
}

// A source that fails after it was read once is tried again: the published set stays.
func TestFailFastIsForTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, func(o *podsync.Options) { o.FailFast = true })
		put("1")
		synctest.Wait()
		agent.Inventory().Failed(source, errors.New("connection refused"))
		synctest.Wait()
		wantDegraded(t, agent, "1")
		wantProbe(t, agent, "/healthz", http.StatusOK)
	})
}

// Sources that do not fit together are no set: nothing is observed.
func TestConflictIsNoSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, func(o *podsync.Options) { o.Sources = append(o.Sources, podsync.Source{Name: "other"}) })
		agent.Inventory().Replace("other", nil)
		put("1")
		synctest.Wait()
		agent.Inventory().Put("other", filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "other"}, Entries: []filemap.Entry{{Key: "a"}}})
		synctest.Wait()
		if s := w.status(t); s.Observed != "" || s.Published != w.published[0] || s.Reason != podsync.SourceConflict {
			t.Errorf("status %+v", s)
		}
		for _, path := range []string{"/startupz", "/readyz", "/healthz"} {
			wantProbe(t, agent, path, http.StatusOK) // the old set is in place, as promised
		}
		wantDegraded(t, agent, "1")
	})
}

// A deleted named object keeps its files and is reported.
func TestDeletedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, nil)
		put("1")
		synctest.Wait()
		agent.Inventory().Remove(source, filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "app"})
		synctest.Wait()
		if len(w.published) != 1 {
			t.Errorf("published %v", w.published)
		}
		if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_degraded 1\n") {
			t.Errorf("metrics\n%s", metrics)
		}
		put("2")
		synctest.Wait()
		if len(w.published) != 2 {
			t.Errorf("the object came back, published %v", w.published)
		}
	})
}

// With --on-delete=remove a deleted object takes its files with it although it
// was named, and the other sources go on.
func TestDeletedObjectIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, func(o *podsync.Options) {
			o.OnDelete = podsync.DeleteRemoves
			o.Sources = append(o.Sources, podsync.Source{Name: "other"})
		})
		agent.Inventory().Replace("other", []filemap.Object{other("b")})
		put("1")
		synctest.Wait()
		agent.Inventory().Remove(source, filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "app"})
		synctest.Wait()
		wantStatus(t, w, podsync.InStep, 1, 0)
		agent.Inventory().Put("other", other("b", "c"))
		synctest.Wait()
		wantStatus(t, w, podsync.InStep, 2, 0)
		for _, path := range []string{"/startupz", "/readyz"} {
			wantProbe(t, agent, path, http.StatusOK)
		}
	})
}

// other is a second object with empty files.
func other(keys ...string) filemap.Object {
	o := filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: "other"}}
	for _, key := range keys {
		o.Entries = append(o.Entries, filemap.Entry{Key: key})
	}
	return o
}

// An object that moves from one selection to another is where it is live, not
// where its old copy is kept.
func TestAnObjectThatChangesItsSelection(t *testing.T) {
	opts := podsync.Options{OnDelete: podsync.DeleteKeeps, Sources: []podsync.Source{{Name: "from"}, {Name: "to"}}}
	for name, moves := range map[string][2]string{"forth": {"from", "to"}, "back": {"to", "from"}} {
		inv := podsync.NewInventory(opts, newWorld(), time.Now, func() {})
		inv.Put(moves[0], other("old"))
		inv.Put(moves[1], other("new"))
		inv.Remove(moves[0], other().Ref)
		for range 50 { // maps have no order
			snap := inv.Snapshot()
			if len(snap.Objects) != 1 || snap.Objects[0].Entries[0].Key != "new" || len(snap.Deleted) > 0 {
				t.Fatalf("%s: objects %v, deleted %v", name, snap.Objects, snap.Deleted)
			}
		}
	}
}

// Settling takes only the changes that are on their way.
func TestSettle(t *testing.T) {
	now := at(0)
	inv := podsync.NewInventory(podsync.Options{Sources: []podsync.Source{{Name: source}}}, newWorld(), func() time.Time { return now }, func() {})
	inv.Replace(source, nil)
	planned := inv.Snapshot().Version
	now = at(5)
	inv.Replace(source, nil)
	inv.Settle(planned)
	if first := inv.Snapshot().FirstChange; !first.Equal(at(5)) {
		t.Errorf("the burst begins at %s, want the change that came after", first)
	}
	inv.Settle(inv.Snapshot().Version)
	if first := inv.Snapshot().FirstChange; !first.IsZero() {
		t.Errorf("the burst begins at %s, want none", first)
	}
}

// An empty selection is published as it is, and said aloud.
func TestNoFilesAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, _ := run(t, w, func(o *podsync.Options) { o.Sources[0].Named = false })
		agent.Inventory().Replace(source, nil)
		synctest.Wait()
		if !strings.Contains(w.log.String(), "the sources don't contain any files") {
			t.Errorf("the log says nothing:\n%s", w.log.String())
		}
	})
}
