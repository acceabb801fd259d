package podsync_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
)

// tenant is an object of a namespace with the file x, whose content is the namespace's name.
func tenant(namespace string) filemap.Object {
	var digest filemap.Digest
	copy(digest[:], namespace)
	return filemap.Object{
		Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: namespace, Name: "app"}, Entries: []filemap.Entry{{Key: "x", Digest: digest, Size: 1}},
	}
}

// A file name belongs to the namespace that had it first, also for the next agent. When that
// one has it no more, the name is free.
func TestTheOwnerOfAFileName(t *testing.T) {
	for _, collision := range []filemap.Collision{filemap.Refuse, filemap.FirstWins} {
		t.Run(string(collision), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				several := func(o *podsync.Options) {
					o.Rules.Shared, o.Rules.Collision, o.Sources, o.OnDelete = true, collision, []podsync.Source{{Name: source}}, podsync.DeleteRemoves
				}
				agent, _ := join(t, w, several)
				stop := goOn(t, agent)
				agent.Inventory().Replace(source, []filemap.Object{tenant("b")})
				synctest.Wait()
				ofB := w.status(t).Published
				agent.Inventory().Put(source, tenant("a"))
				synctest.Wait()
				wantLoser(t, w, agent, ofB)
				stop()

				agent, _ = join(t, w, several)
				stop = goOn(t, agent)
				agent.Inventory().Replace(source, []filemap.Object{tenant("a"), tenant("b")})
				synctest.Wait()
				wantLoser(t, w, agent, ofB)

				agent.Inventory().Remove(source, tenant("b").Ref)
				synctest.Wait()
				if s := w.status(t); s.Published == ofB || s.Files != 1 || s.Degraded {
					t.Errorf("after the owner is gone: %+v", s)
				}
				agent.Inventory().Put(source, tenant("b"))
				synctest.Wait()
				if s := w.status(t); s.Published == ofB || !strings.Contains(s.Message, `"x" of configmap/b/app is left out: configmap/a/app had it first`) {
					t.Errorf("the old owner comes back: %+v", s)
				}
				stop()
			})
		})
	}
}

// wantLoser expects b's file in place, and everywhere said that a's is not.
func wantLoser(t *testing.T, w *world, agent *podsync.Agent, ofB string) {
	t.Helper()
	const why = `the file \"x\" of configmap/a/app is left out: configmap/b/app had it first`
	if s := w.status(t); s.Published != ofB || !s.Degraded || !strings.Contains(s.Message, strings.ReplaceAll(why, `\`, "")) {
		t.Errorf("status %+v", s)
	}
	wantDegraded(t, agent, "1")
	wantProbe(t, agent, "/readyz", http.StatusOK)
	if w.said(why) == 0 {
		t.Errorf("the log does not say it:\n%s", w.log.String())
	}
}

// goOn runs an agent until the returned function is called.
func goOn(t *testing.T, agent *podsync.Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	}
}

// Sources beyond the limit are refused like a conflict, everywhere visible, and accepted again
// when they fit.
func TestSetTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent, put := run(t, w, func(o *podsync.Options) {
			o.Rules.MaxBytes, o.Sources = 1<<20, append(o.Sources, podsync.Source{Name: "other"})
		})
		inv := agent.Inventory()
		inv.Replace("other", nil)
		put("1")
		synctest.Wait()
		published := w.status(t).Published
		large := other()
		large.Omitted = 3 << 20
		if inv.Admit("other", large.Ref, large.Omitted) {
			t.Error("3 MiB fit into 1 MiB")
		}
		inv.Put("other", large)
		put("2")
		synctest.Wait()
		s := w.status(t)
		if s.Published != published || s.Reason != podsync.SetTooLarge || !s.Degraded || !strings.Contains(s.Message, "the largest is configmap/ns/other with 3.0 MiB") {
			t.Errorf("status %+v", s)
		}
		wantDegraded(t, agent, "1")
		for _, path := range []string{"/startupz", "/readyz", "/healthz"} {
			wantProbe(t, agent, path, http.StatusOK)
		}
		if _, metrics := probe(agent, "/metrics"); !strings.Contains(metrics, "\nlockstep_sync_source_bytes 3.149824e+06\n") || !strings.Contains(metrics, "\nlockstep_sync_limit_bytes 1.048576e+06\n") {
			t.Errorf("metrics\n%s", metrics)
		}
		if w.said("the sources are too large; the published set stays") != 1 {
			t.Errorf("the log is\n%s", w.log.String())
		}
		inv.Remove("other", large.Ref)
		synctest.Wait()
		if s := w.status(t); s.Published == published || s.Reason != podsync.InStep || s.Degraded {
			t.Errorf("after it is gone: %+v", s)
		}
	})
}

// The weight of all sources counts together. An object that is read again counts once, and one
// that shrank makes room.
func TestAdmit(t *testing.T) {
	const mib = 1 << 20
	opts := podsync.Options{Sources: []podsync.Source{{Name: "one"}, {Name: "two"}}, Rules: filemap.Rules{MaxBytes: 10 * mib}}
	inv := podsync.NewInventory(opts, newWorld(), time.Now, func() {})
	of := func(name string, size int64) filemap.Object {
		return filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: "ns", Name: name}, Entries: []filemap.Entry{{Key: "k", Size: size}}}
	}
	admit := func(want bool, source, name string, size int64) {
		t.Helper()
		if got := inv.Admit(source, of(name, size).Ref, of(name, size).Weight()); got != want {
			t.Errorf("%d MiB of %s: %v", size/mib, name, got)
		}
	}
	admit(true, "one", "a", 6*mib)
	admit(false, "two", "b", 5*mib) // a is on its way
	inv.Replace("one", []filemap.Object{of("a", 6*mib)})
	admit(true, "one", "a", 6*mib) // once more
	admit(true, "two", "b", 4*mib)
	inv.Replace("two", nil) // it never arrived
	admit(true, "two", "c", 4*mib)
	omitted := filemap.Object{Ref: of("d", 0).Ref, Omitted: 5 * mib}
	inv.Put("two", omitted)
	if inv.Readmits("two") {
		t.Error("it does not fit yet")
	}
	inv.Put("one", of("a", mib))
	if !inv.Readmits("two") || inv.Readmits("one") {
		t.Error("it fits now, and only its source has to be read again")
	}
	inv.Remove("two", omitted.Ref)
	if inv.Readmits("two") {
		t.Error("it is gone")
	}
}

// TestShares: a namespace that has its share of the size limit leaves room for the others, and
// gets room again only by its own objects.
func TestShares(t *testing.T) {
	const mib = 1 << 20
	opts := podsync.Options{Sources: []podsync.Source{{Name: "all"}}, Rules: filemap.Rules{MaxBytes: 8 * mib, Share: 2 * mib, Shared: true}}
	inv := podsync.NewInventory(opts, newWorld(), time.Now, func() {})
	of := func(namespace, name string, size int64) filemap.Object {
		return filemap.Object{Ref: filemap.Ref{Kind: filemap.ConfigMap, Namespace: namespace, Name: name}, Entries: []filemap.Entry{{Key: "k", Size: size}}}
	}
	admit := func(want bool, o filemap.Object) {
		t.Helper()
		if got := inv.Admit("all", o.Ref, o.Weight()); got != want {
			t.Errorf("%s of %s: %v", filemap.Bytes(o.Weight()), o.Ref, got)
		}
		if !want {
			o.Omitted, o.Entries = o.Weight(), nil
		}
		inv.Put("all", o)
	}
	admit(true, of("greedy", "one", 2*mib))
	admit(false, of("greedy", "two", mib))
	admit(true, of("modest", "one", 2*mib))
	inv.Remove("all", of("modest", "one", 0).Ref)
	if inv.Readmits("all") {
		t.Error("what another namespace gives up makes room for one that has its share")
	}
	admit(true, of("greedy", "one", mib))
	if !inv.Readmits("all") {
		t.Error("its own object that shrank doesn't make room")
	}
}

// TestAdmittedObjectsStay: after a restart, an object that had room within the size limit keeps it,
// in whatever order the objects are listed. An object that is gone makes room.
func TestAdmittedObjectsStay(t *testing.T) {
	const mib = 1 << 20
	of := func(namespace, name string, size int64) filemap.Object {
		ref := filemap.Ref{Kind: filemap.ConfigMap, Namespace: namespace, Name: name}
		return filemap.Object{Ref: ref, Entries: []filemap.Entry{{Key: namespace + "-" + name, Size: size}}}
	}
	w := newWorld()
	limit := int64(8 * mib)
	// restarted is what the status of a new agent says about the objects that it left out.
	restarted := func(t *testing.T, objects ...filemap.Object) string {
		t.Helper()
		objects = slices.Clone(objects)
		agent, _ := join(t, w, func(o *podsync.Options) {
			o.Rules.Shared, o.Rules.MaxBytes, o.Rules.Share, o.Sources = true, limit, 2*mib, []podsync.Source{{Name: source}}
		})
		defer goOn(t, agent)()
		for i, o := range objects {
			if !agent.Inventory().Admit(source, o.Ref, o.Weight()) {
				objects[i] = filemap.Object{Ref: o.Ref, Omitted: o.Weight()}
			}
		}
		agent.Inventory().Replace(source, objects)
		synctest.Wait()
		return w.status(t).Message
	}
	synctest.Test(t, func(t *testing.T) {
		full := []filemap.Object{of("b", "z", 2*mib), of("c", "app", 2*mib), of("d", "app", 2*mib), of("e", "app", 2*mib)}
		if message := restarted(t, full...); message != "" {
			t.Errorf("at first: %s", message)
		}
		for range 2 {
			message := restarted(t, append([]filemap.Object{of("a", "app", mib), of("b", "a", mib)}, full...)...)
			if strings.Count(message, "is left out") != 2 || !strings.Contains(message, "configmap/a/app is left out") || !strings.Contains(message, "configmap/b/a is left out") {
				t.Errorf("with two new objects: %s", message)
			}
		}
		restarted(t, full[1:]...)
		others := append([]filemap.Object{of("a", "app", mib)}, full[1:]...)
		if message := restarted(t, others...); message != "" {
			t.Errorf("after an object is gone: %s", message)
		}
		limit = 2 * mib
		if message := restarted(t, others...); strings.Count(message, "is left out") != 3 {
			t.Errorf("with a smaller limit: %s", message)
		}
	})
}

// TestDirectoriesHaveNoShare: a directory beside several namespaces may take what the limit leaves.
func TestDirectoriesHaveNoShare(t *testing.T) {
	const mib = 1 << 20
	opts := podsync.Options{Sources: []podsync.Source{{Name: "all"}, {Name: "directory /d"}}, Rules: filemap.Rules{MaxBytes: 8 * mib, Share: 2 * mib, Shared: true}}
	inv := podsync.NewInventory(opts, newWorld(), time.Now, func() {})
	dir := filemap.Ref{Kind: filemap.Directory, Name: "/d"}
	if inv.Admit("directory /d", dir, 9*mib) || !inv.Admit("directory /d", dir, 7*mib) {
		t.Error("the limit of a directory is that of the set")
	}
	if inv.Admit("all", filemap.Ref{Kind: filemap.ConfigMap, Namespace: "a", Name: "app"}, 2*mib) {
		t.Error("a directory counts towards the limit of the set")
	}
}
