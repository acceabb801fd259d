// Package spread decides how a change reaches the workloads that use it: to which of them
// next, how many at the same time, and when to stop.
//
//	due -> ready -> rolling -> proven        each step begins when the earlier ones are
//	  |      |         |  +--> failed        proven: 1 workload, 2, 4, 8, …, up to the budget
//	  |      |         +-----> has           freed or over: it proves nothing
//	  +------+-> later, held                 they don't ask for a turn
//
// A rollout takes a turn of each of its changes before the patch, and returns them when
// its end is known ([Turn.Judge]).
package spread

import (
	"iter"
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Standing is how far a workload is with a change.
type Standing uint8

// Standings of a workload.
const (
	// Has: it has the change, or doesn't need it. It proves nothing.
	Has Standing = iota
	// Due: it will ask for a turn soon; its quiet window runs, or it wasn't checked yet.
	Due
	// Ready: it waits for its turn.
	Ready
	// Later: it is due, and something that ends by itself is in the way: a maintenance
	// window, damping, another workload, an error.
	Later
	// Held: it is due, and a user has to act first.
	Held
	// Rolling: it has a turn.
	Rolling
	// Proven: it has the change, and is healthy with it.
	Proven
	// Failed: it was healthy before, and failed with the change.
	Failed
)

// Member is a workload that uses a change.
type Member struct {
	// ID names the workload as the record does: "Deployment.apps/shop/web".
	ID, Namespace string
	Standing      Standing
	// First is true for a workload that a user wants to be the first.
	First bool
	// Able is true when the workload's rollout can prove the change: all pods are available,
	// or were before its rollout began, and they are replaced automatically. Healthy is true
	// when that has been so for the settle time.
	Able, Healthy bool
	// AtOnce is true when the source asks not to be delivered in steps.
	AtOnce bool
	// Why is the reason of Later and Held.
	Why input.Reason
}

// Spread is a change on its way.
type Spread struct {
	Change input.Change
	// Steps is false when only the budget applies.
	Steps bool

	// members are all followed workloads that use it, by ID, and tally counts them.
	members map[string]Member
	tally   tally
}

// Set adds a member, or replaces what is known about it.
func (s *Spread) Set(m Member) {
	if s.members == nil {
		s.members, s.tally.in = map[string]Member{}, map[string]int{}
	}
	s.Remove(m.ID)
	s.members[m.ID] = m
	s.tally.count(m, 1)
}

// Remove drops a member that no longer uses the change.
func (s *Spread) Remove(id string) {
	if m, known := s.members[id]; known {
		s.tally.count(m, -1)
		delete(s.members, id)
	}
}

// Member is what is known about a workload; false when it doesn't use the change.
func (s *Spread) Member(id string) (Member, bool) {
	m, uses := s.members[id]
	return m, uses
}

// Limits bound how many workloads roll at the same time.
type Limits struct {
	// Rolling is the budget of each change, zero for no limit.
	Rolling int
	// In is the limit of a namespace, zero for none. Nil: no namespace has one.
	In func(namespace string) int
}

func (l Limits) in(namespace string) int {
	if l.In == nil {
		return 0
	}
	return l.In(namespace)
}

// Together is how many users a change may have to go to all of them at once.
const Together = 3

// Room reports whether the member may start, as far as this change goes.
func (s *Spread) Room(m Member, l Limits) bool {
	t := s.tally
	if l.Rolling > 0 && t.rolling >= l.Rolling {
		return false
	}
	if most := l.in(m.Namespace); most > 0 && t.in[m.Namespace] >= most {
		return false
	}
	switch {
	case !s.Steps, m.AtOnce, len(s.members) <= Together, t.able+t.proven == 0:
		return true
	case t.proven == 0 && (!m.Able || !m.Healthy || t.first > 0 && !m.First):
		return false
	case !m.Able:
		return true // it takes no step
	}
	step := 1
	for 2*step-1 <= t.proven {
		step *= 2
	}
	return l.Rolling > 0 && step >= l.Rolling || t.proven+t.proving < 2*step-1
}

// isFull reports whether no member may start, whichever it is.
func (s *Spread) isFull(l Limits) bool {
	l.In = nil
	return !s.Room(Member{AtOnce: s.tally.atOnce > 0}, l) && !s.Room(Member{Able: true, Healthy: true, First: true}, l)
}

// tally counts the members of a spread.
type tally struct {
	// waiting are due, and open are those that will ask for a turn, or return it, before an
	// event.
	waiting, open int
	// rolling have a turn, and in counts them by namespace.
	rolling int
	in      map[string]int
	// able can prove the change soon, proving are those of them that roll, and first those
	// that a user wants to be the first.
	able, proving, first int
	// atOnce wait for their turn, and take no step.
	atOnce         int
	proven, failed int
	// behind wait until another workload has finished.
	behind int
}

// count adds n members like this one.
func (t *tally) count(m Member, n int) {
	is := func(standings ...Standing) int {
		if slices.Contains(standings, m.Standing) {
			return n
		}
		return 0
	}
	t.waiting += is(Due, Ready, Later, Held)
	t.open += is(Due, Ready, Later, Rolling)
	t.rolling += is(Rolling)
	t.in[m.Namespace] += is(Rolling)
	t.proven += is(Proven)
	t.failed += is(Failed)
	if m.isBehind() {
		t.behind += n
	}
	if m.Able {
		t.able += is(Due, Ready, Rolling)
		t.proving += is(Rolling)
	}
	if m.Able && m.First {
		t.first += is(Due, Ready, Rolling)
	}
	if m.AtOnce {
		t.atOnce += is(Ready)
	}
}

// Counts are for users.
type Counts struct {
	All, Rolling, Waiting, Proven, Failed int
}

// Count counts the members by their standing.
func (s *Spread) Count() Counts {
	return Counts{All: len(s.members), Rolling: s.tally.rolling, Waiting: s.tally.waiting, Proven: s.tally.proven, Failed: s.tally.failed}
}

// IsOver reports whether no member has a turn, or will ask for one before an event.
func (s *Spread) IsOver() bool {
	return s.tally.open == 0
}

// Members are all workloads that use the change, in any order.
func (s *Spread) Members() iter.Seq[Member] {
	return maps.Values(s.members)
}

// Failed names the members that failed with the change.
func (s *Spread) Failed() []string {
	var failed []string
	if s.tally.failed == 0 {
		return nil
	}
	for _, m := range s.members {
		if m.Standing == Failed {
			failed = append(failed, m.ID)
		}
	}
	return failed
}

// Behind are the members that wait until another workload has finished.
func (s *Spread) Behind() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if s.tally.behind == 0 {
			return // as in most changes
		}
		for _, m := range s.members {
			if m.isBehind() && !yield(m) {
				return
			}
		}
	}
}

func (m Member) isBehind() bool { return m.Standing == Later && m.Why == input.AwaitsWorkload }

// IsWaiting reports whether the change is due for the member.
func (m Member) IsWaiting() bool {
	return m.Standing == Due || m.Standing == Ready || m.Standing == Later || m.Standing == Held
}
