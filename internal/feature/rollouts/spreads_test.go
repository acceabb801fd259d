package rollouts

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// TestReserve: of sixty workloads that ask at the same time, as many get a turn as the budget allows.
func TestReserve(t *testing.T) {
	t.Parallel()
	const members, budget = 60, 5
	c := input.Change{Namespace: "shop", ID: app, Version: "2"}
	s := newSpreads(Options{Safety: Safety{MaxRolling: budget}}, time.Now)
	s.census = func(input.Change) ([]spread.Member, []kube.Key) { return nil, nil }
	var turns atomic.Int64
	var askers sync.WaitGroup
	for i := range members {
		askers.Go(func() {
			key := web(fmt.Sprint(i))
			if granted, _ := s.reserve(key, map[input.Change]spread.Member{c: {ID: key.ID(), Namespace: "shop", Able: true}}, nil); granted {
				turns.Add(1)
			}
		})
	}
	askers.Wait()
	if turns.Load() != budget {
		t.Errorf("%d workloads got a turn, want %d", turns.Load(), budget)
	}
}

// TestReserveConcurrently: workers that ask at the same time never exceed the budget.
func TestReserveConcurrently(t *testing.T) {
	t.Parallel()
	const members, budget = 60, 5
	c := input.Change{Namespace: "shop", ID: app, Version: "2"}
	s := newSpreads(Options{Safety: Safety{MaxRolling: budget}}, time.Now)
	s.census = func(input.Change) (all []spread.Member, _ []kube.Key) {
		for i := range members {
			all = append(all, spread.Member{ID: web(fmt.Sprint(i)).ID(), Namespace: "shop", Standing: spread.Due, Able: true})
		}
		return all, nil
	}
	queue := make(chan kube.Key, 100*members)
	s.Wake(func(key kube.Key) { queue <- key })
	var rolling, most, done atomic.Int64
	var workers sync.WaitGroup
	type worked struct {
		sync.Mutex // one worker at a time, as with the real queue
		has        bool
	}
	all := map[kube.Key]*worked{}
	for i := range members {
		all[web(fmt.Sprint(i))] = &worked{}
		queue <- web(fmt.Sprint(i))
	}
	finished := make(chan struct{})
	check := func(key kube.Key) {
		w := all[key]
		w.Lock()
		defer w.Unlock()
		m := spread.Member{ID: key.ID(), Namespace: "shop", Able: true}
		if w.has {
			return
		}
		if granted, _ := s.reserve(key, map[input.Change]spread.Member{c: m}, nil); !granted {
			return
		}
		if n := rolling.Add(1); n > most.Load() {
			most.Store(n)
		}
		w.has, m.Standing = true, spread.Proven
		rolling.Add(-1)
		s.report(key, map[input.Change]spread.Member{c: m}, false)
		if done.Add(1) == members {
			close(finished)
		}
	}
	for range 32 {
		workers.Go(func() {
			for {
				select {
				case key := <-queue:
					check(key)
				case <-finished:
					return
				}
			}
		})
	}
	workers.Wait()
	if most.Load() > budget {
		t.Errorf("%d rolled at the same time, want at most %d", most.Load(), budget)
	}
	if len(s.active) != 0 {
		t.Error("the change is through, and still kept")
	}
}

// TestCanaryOfEachChange: a workload waits for another one in each of its changes. Every source reports that, in each
// namespace.
func TestCanaryOfEachChange(t *testing.T) {
	t.Parallel()
	one, other := input.Change{Namespace: "shop", ID: app, Version: "2"}, input.Change{ID: db, Version: "2"}
	s := newSpreads(Options{Safety: Safety{Ramp: true}}, func() time.Time { return now })
	s.census = func(c input.Change) (all []spread.Member, _ []kube.Key) {
		for _, name := range []string{"x", "y", "z"} {
			all = append(all, spread.Member{ID: web(c.ID.Name + name).ID(), Namespace: "shop", Standing: spread.Due, Able: true, Begins: now.Add(time.Hour), Why: input.QuietWindow, First: name == "x"})
		}
		return all, nil
	}
	m := spread.Member{ID: web("a").ID(), Namespace: "shop", Able: true, Healthy: true, Begins: now.Add(-time.Minute)}
	granted, why := s.reserve(web("a"), map[input.Change]spread.Member{one: m, other: m}, nil)
	if granted || !strings.HasPrefix(why.canaries[one], "deployment/appx ") || !strings.HasPrefix(why.canaries[other], "deployment/dbx ") {
		t.Errorf("granted %t, waits for %v", granted, why.canaries)
	}
	if !s.isNews(other, "shop", "x") || !s.isNews(other, "blog", "x") || s.isNews(other, "shop", "x") {
		t.Error("it isn't reported once in each namespace")
	}
}
