package reloader

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

const (
	// lookAgain is how often it is checked whether sources have been listed.
	lookAgain = 100 * time.Millisecond
	// readAgain is the pause after a failure to read the record.
	readAgain = time.Second
	// surveyEvery is how often all workloads are listed.
	surveyEvery = 5 * time.Minute
	// margin is how far the clocks of API servers may be apart, and how long a write may take.
	margin = 5 * time.Second
)

// lead works as long as this process is the leader.
func (r *Reloader) lead(ctx context.Context, add func(kube.Key)) {
	r.mu.Lock()
	r.add = add
	r.mu.Unlock()
	if r.Webhook != nil {
		r.leads.Store(true)
		<-ctx.Done()
		return
	}
	r.readRecord(ctx)
	r.leads.Store(true)
	known := r.record.isKnown()
	if known {
		r.pending.clear() // The record tells more than what this process has seen.
	}
	for _, namespace := range r.pending.namespaces() {
		r.wake(inNamespace(namespace))
	}
	catchUp := r.comparing()
	_ = wait.PollUntilContextCancel(ctx, lookAgain, true, func(context.Context) (bool, error) {
		_, answered := catchUp()
		return answered, nil
	})
	if ctx.Err() != nil {
		return
	}
	var parts sync.WaitGroup
	parts.Go(func() { // What can't be read yet is compared as soon as it can be.
		_ = wait.PollUntilContextCancel(ctx, readAgain, true, func(context.Context) (bool, error) {
			compared, _ := catchUp()
			return compared, nil
		})
	})
	parts.Go(func() { r.record.run(ctx, r.seen, &r.passes) })
	for first := !known; ctx.Err() == nil; {
		complete := r.survey(ctx, first)
		first = first && !complete
		select {
		case <-ctx.Done():
		case <-time.After(surveyEvery):
		}
	}
	parts.Wait()
}

// readRecord reads the record. Without the permission, there is none.
func (r *Reloader) readRecord(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, readAgain, true, func(ctx context.Context) (bool, error) {
		err := r.record.read(ctx)
		r.record.report(err)
		return err == nil || isRefused(err), nil
	})
}

// comparing returns a function that finds what happened while no process watched, in the areas that
// have been listed since its last call. It reports whether it has seen all of them, and whether the
// API server has answered for all.
func (r *Reloader) comparing() func() (all, answered bool) {
	waiting := map[*area]bool{}
	for _, a := range r.areas {
		waiting[a] = true
	}
	return func() (all, answered bool) {
		if r.chosen.mirror != nil && !r.chosen.mirror.Status().Answered() {
			return false, false
		}
		answered = true
		for a := range waiting {
			switch s := a.mirror.Status(); {
			case s.Synced:
				r.compare(a)
				a.compared.Store(true)
				delete(waiting, a)
			case !s.Answered() && !s.Broken():
				answered = false
			}
		}
		return len(waiting) == 0, answered
	}
}

// compare compares the sources of an area with the record.
func (r *Reloader) compare(a *area) {
	h, followed := r.record.horizon(a.name())
	newest := newestOf(func(visit func(*source)) {
		a.mirror.Each(func(s *source) {
			if r.chosen.has(s.namespace) {
				visit(s)
			}
		})
	})
	for namespace, sources := range newest {
		for _, s := range sources {
			if c, ok := r.missed(s, h, followed); ok {
				r.note(namespace, c)
			}
		}
	}
	for namespace, ids := range r.record.entries() {
		for _, of := range ids {
			if of.Type == a.of && a.has(namespace) && r.chosen.has(namespace) && newest[namespace][of] == nil {
				r.vanished(namespace, of)
			}
		}
	}
}

// missed is the change of a source that no process has seen.
func (r *Reloader) missed(s *source, h horizon, followed bool) (*change, bool) {
	c := s.changeAt(r.Now())
	if e, known := r.record.entry(s.namespace, s.id()); known {
		c.before = e.hash
		if e.hash == s.hash && len(e.owed) > 0 {
			c.before, c.only = "", map[string]bool{}
			for _, name := range e.owed {
				c.only[name] = true
			}
		}
		return c, e.hash != s.hash || len(e.owed) > 0
	}
	switch {
	case s.Type == stakater.SecretProviderClass:
		return c, false
	case !followed:
		c.event = added
		return c, r.OnCreate && r.SyncAfterRestart
	case s.number() <= h.Version:
		return c, false
	case s.created.After(h.At) && !s.dataWrittenAt.After(s.created):
		c.event = added
		return c, r.OnCreate
	}
	return c, s.dataWrittenAt.After(h.At.Add(-margin))
}

// vanished is called for a source on record that doesn't exist.
func (r *Reloader) vanished(namespace string, of id) {
	if !r.OnDelete || of.Type == stakater.SecretProviderClass {
		r.record.forget(namespace, of)
		return
	}
	now := r.Now()
	r.note(namespace, &change{Source: stakater.Source{Type: of.Type, Name: of.Name}, event: deleted, hash: stakater.DeletedHash, first: now, last: now})
}

// seen notes up to where everything has been seen. A change that waits is found again by the next
// process.
func (r *Reloader) seen() {
	seen := map[string]sight{}
	for _, a := range r.areas {
		version := number(a.mirror.Version())
		if !a.compared.Load() || version == 0 {
			continue
		}
		oldest := r.pending.oldest(a.of, a.has)
		if oldest > 0 {
			version = min(version, oldest-1)
		}
		seen[a.name()] = sight{version: version, held: oldest > 0 || !a.mirror.Status().Works()}
	}
	r.record.see(seen)
}
