package rollouts

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/objectname"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// spreads are the changes on their way, while a workload is due or rolling. They are in memory
// only: from cache and record, a census finds out where each workload is with a change.
type spreads struct {
	limits spread.Limits
	// steps is true when a change is delivered in steps, and stopAfter is how many failures
	// stop it.
	steps     bool
	stopAfter int
	// census lists the members of a change, and those of them whose standing isn't certain
	// before they are checked.
	census func(input.Change) (members []spread.Member, uncertain []kube.Key)

	now func() time.Time

	mu     sync.Mutex
	wake   func(kube.Key)
	active map[input.Change]*spread.Spread
	// of are the active changes of each member, by ID.
	of map[string][]*spread.Spread
	// open are the workloads with a rollout that has a place.
	open map[kube.Key]struct{}
	// unchecked are workloads that have a place and can't be checked, and since when.
	unchecked map[kube.Key]time.Time
	// told is what was reported about an active change on its source, by namespace: a shared source has a copy in
	// each of them.
	told map[input.Change]map[string]string
}

func newSpreads(o Options, now func() time.Time) *spreads {
	return &spreads{
		limits: spread.Limits{Rolling: o.Safety.MaxRolling, Wait: o.MaxDelay, Proof: o.Safety.Timeout}, steps: o.Safety.Ramp, stopAfter: o.Safety.StopAfter, now: now,
		wake: func(kube.Key) {}, active: map[input.Change]*spread.Spread{}, of: map[string][]*spread.Spread{}, open: map[kube.Key]struct{}{},
		unchecked: map[kube.Key]time.Time{}, told: map[input.Change]map[string]string{},
	}
}

// Wake sets the function that is called with a workload whose turn may have come.
func (s *spreads) Wake(f func(kube.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = f
}

// refusal is why a workload has no turn. The zero value is that other workloads get the change first, or too
// many roll.
type refusal struct {
	// canaries describe, for each change, the workload that a user wants to be the first with it, and that isn't
	// expected to begin.
	canaries map[input.Change]string
	// recheck is when the workload will have waited for so long that it may begin, or that it has to be
	// reported, zero for never.
	recheck time.Duration
}

// reserve takes a turn of each change, or of none. The members are the workload in each of them,
// and resumed are the changes that no failure stops.
func (s *spreads) reserve(key kube.Key, members map[input.Change]spread.Member, resumed []input.Change) (granted bool, why refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wants []*spread.Spread
	for c, m := range members {
		at := s.join(c, key)
		m.Standing = spread.Ready
		s.set(at, m)
		wants = append(wants, at)
	}
	for _, at := range wants {
		// A failure that isn't on record, because the process ended before.
		if spread.Stopped(at.Failed(), s.stopAfter) != "" && !slices.Contains(resumed, at.Change) {
			return false, refusal{}
		}
	}
	admitted := spread.Admit(wants, s.wants, s.at())
	if !slices.Contains(admitted, key.ID()) {
		for _, id := range admitted { // nobody else wakes them when this one was woken in their place
			s.wakeUp(id)
		}
		return false, s.refusal(key.ID(), wants)
	}
	overdue := false
	for c, m := range members {
		m.Standing = spread.Rolling
		s.set(s.active[c], m)
		s.endCanary(s.active[c])
		overdue = overdue || m.IsOverdue(s.at())
	}
	if overdue { // healthy ones waited for it to begin
		s.follow(key.ID(), wants)
	}
	return true, refusal{}
}

// at are the limits now.
func (s *spreads) at() spread.Limits {
	l := s.limits
	l.Now = s.now()
	return l
}

// refusal is why a workload has no turn of these changes.
func (s *spreads) refusal(id string, wants []*spread.Spread) (why refusal) {
	l := s.at()
	why.canaries = map[input.Change]string{}
	for _, at := range wants {
		m, _ := at.Member(id)
		if left := m.Latest(l).Sub(l.Now); left > 0 {
			why.recheck = sooner(why.recheck, left)
		}
		if canary, waits := at.Canary(m, l); waits {
			why.canaries[at.Change] = objectname.OfID(canary.ID) + " goes first, and waits (" + string(cmp.Or(canary.Why, input.AwaitsTurn)) + ")"
		}
	}
	return why
}

// holds reports whether a workload already has a turn of each change: its patch was sent, and the
// answer is lost.
func (s *spreads) holds(key kube.Key, members map[input.Change]spread.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range members {
		at, active := s.active[c]
		if !active {
			return false
		}
		if m, _ := at.Member(key.ID()); m.Standing != spread.Rolling {
			return false
		}
	}
	return true
}

// isIdle reports whether nothing is known of the workload, and there is nothing to report of it.
func (s *spreads) isIdle(key kube.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, open := s.open[key]
	return len(s.active) == 0 && !open
}

// report sets where a workload is with each of its changes, and wakes those whose turn has come.
// It leaves the changes that aren't among them.
func (s *spreads) report(key kube.Key, members map[input.Change]spread.Member, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
	delete(s.unchecked, key)
	if open {
		s.open[key] = struct{}{}
	}
	id := key.ID()
	var changed []*spread.Spread
	for _, at := range slices.Clone(s.of[id]) {
		if _, uses := members[at.Change]; !uses && s.leave(at, id, members) {
			changed = append(changed, at)
		}
	}
	for c, m := range members {
		at, active := s.active[c]
		if !active {
			continue
		}
		before, _ := at.Member(id)
		if before.Standing == spread.Rolling && m.Standing == spread.Rolling {
			m.Able = before.Able
		}
		if m.Begins.Equal(before.Begins) {
			before.Begins = m.Begins
		}
		if m != before {
			s.set(at, m)
			changed = append(changed, at)
		}
	}
	s.follow(id, changed)
}

// postpone lets others go before a workload that can't be checked. One that rolls keeps its place for the timeout,
// counted from the first such check: its end may never be seen. It returns when to check that, zero when the
// workload has no place.
func (s *spreads) postpone(key kube.Key) (recheck time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, all, now := key.ID(), slices.Clone(s.of[key.ID()]), s.now()
	since, known := s.unchecked[key]
	if !known {
		since = now
	}
	left := since.Add(s.limits.Proof).Sub(now)
	for _, at := range all {
		m, _ := at.Member(id)
		switch {
		case m.Standing == spread.Rolling && left > 0:
			s.unchecked[key], recheck = since, left
		case m.Standing == spread.Rolling, m.Standing == spread.Due, m.Standing == spread.Ready:
			m.Standing, m.Why, m.Begins = spread.Due, input.Unreadable, time.Time{}
			at.Set(m)
		}
	}
	if left <= 0 {
		delete(s.open, key)
	}
	s.follow(id, all)
	return recheck
}

// leave removes a member that doesn't use the change any more. While namespaces get their copies
// of a shared source one after the other, a workload whose copy is another version stays.
func (s *spreads) leave(at *spread.Spread, id string, members map[input.Change]spread.Member) (changed bool) {
	for c, m := range members {
		if c.IsShared() && c.Subject() == at.Change.Subject() {
			before, _ := at.Member(id)
			m.Standing, m.Why = spread.Has, ""
			s.set(at, m)
			return m != before
		}
	}
	at.Remove(id)
	s.unlink(at, id)
	return true
}

// follow wakes the members whose turn has come, and those that wait for others, and forgets changes that are through.
func (s *spreads) follow(id string, changed []*spread.Spread) {
	for _, next := range spread.Admit(changed, s.wants, s.at()) {
		if next != id {
			s.wakeUp(next)
		}
	}
	for _, at := range changed {
		s.endCanary(at)
		for next := range at.Behind() {
			if next.ID != id {
				s.wakeUp(next.ID)
			}
		}
		if at.IsOver() {
			delete(s.active, at.Change)
			delete(s.told, at.Change)
			for m := range at.Members() {
				s.unlink(at, m.ID)
			}
		}
	}
}

// isNews reports whether this wasn't reported yet about an active change in a namespace, and notes that it is.
func (s *spreads) isNews(c input.Change, namespace, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, active := s.active[c]; !active || s.told[c][namespace] == text {
		return false
	}
	if s.told[c] == nil {
		s.told[c] = map[string]string{}
	}
	s.told[c][namespace] = text
	return true
}

// wakeWaiting wakes every member of a change that waits.
func (s *spreads) wakeWaiting(c input.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, active := s.active[c]; active {
		s.wakeAll(at)
	}
}

func (s *spreads) wakeAll(at *spread.Spread) {
	for m := range at.Members() {
		if m.IsWaiting() {
			s.wakeUp(m.ID)
		}
	}
}

// endCanary wakes the members of a change that was reported to wait for the workload that a user wants to be the
// first, once there is none to wait for: their reason is another one now.
func (s *spreads) endCanary(at *spread.Spread) {
	if _, told := s.told[at.Change]; told && !at.HasCanary() {
		delete(s.told, at.Change)
		s.wakeAll(at)
	}
}

func (s *spreads) wakeUp(id string) {
	if key, err := kube.ParseID(id); err == nil {
		s.wake(key)
	}
}

// join is the spread of a change. The first workload that asks for it has all members counted.
func (s *spreads) join(c input.Change, asks kube.Key) *spread.Spread {
	at, active := s.active[c]
	if active {
		return at
	}
	at = &spread.Spread{Change: c, Steps: s.steps}
	s.active[c] = at
	members, uncertain := s.census(c)
	for _, m := range members {
		s.set(at, m)
	}
	for _, key := range uncertain {
		if key != asks {
			s.wake(key)
		}
	}
	return at
}

func (s *spreads) set(at *spread.Spread, m spread.Member) {
	if _, uses := at.Member(m.ID); !uses {
		s.of[m.ID] = append(s.of[m.ID], at)
	}
	at.Set(m)
}

func (s *spreads) unlink(at *spread.Spread, id string) {
	s.of[id] = slices.DeleteFunc(s.of[id], func(other *spread.Spread) bool { return other == at })
	if len(s.of[id]) == 0 {
		delete(s.of, id)
	}
}

// wants are the changes in which a member waits for its turn.
func (s *spreads) wants(id string) []*spread.Spread {
	return slices.DeleteFunc(slices.Clone(s.of[id]), func(at *spread.Spread) bool {
		m, _ := at.Member(id)
		return m.Standing != spread.Ready
	})
}

// before reports whether a workload has to wait for the named one in the changes that are due
// for it. If the named one can't be waited for, ignored describes why.
func (s *spreads) before(asks kube.Key, named string, due []input.Change, known func(id string) bool) (wait bool, ignored string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*spread.Spread
	for _, c := range due {
		all = append(all, s.join(c, asks))
	}
	return spread.Before(named, all, known)
}

// rolling counts the workloads with a rollout that has a place.
func (s *spreads) rolling() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
