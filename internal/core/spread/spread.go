// Package spread decides how a change reaches the workloads that use it: to which of them
// next, how many at the same time, and when to stop.
//
//	due -> ready -> rolling -> proven        each step begins when the earlier ones are
//	  |      |         |  +--> failed        proven: 1 workload, 2, 4, 8, …, up to the budget
//	  |      |         +-----> has           it wasn't healthy before, or its end isn't known: it proves nothing
//	  +------+-> held                        a user has to act first
//
// The first step is a healthy workload that can begin: Member.Begins answers when that is. The other
// workloads don't wait for one that can't begin soon, unless a user chose it (Member.First). Workloads that
// aren't healthy don't wait for that one either: a fix has to reach what is broken.
//
// A rollout takes a turn of each of its changes before the patch, and returns them when
// its end is known ([Turn.Judge]).
package spread

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Standing is how far a workload is with a change.
type Standing uint8

// Standings of a workload.
const (
	// Has: it has the change, or doesn't need it. It proves nothing.
	Has Standing = iota
	// Due: it will ask for a turn. Something that ends by itself is in the way: a quiet or a
	// maintenance window, damping, another workload, an error. Or it wasn't checked yet.
	Due
	// Ready: it waits for its turn.
	Ready
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
	// Begins is when nothing of its own is in the way of a due change any more: in the past for one
	// that waits for its turn. Zero is not known: another workload or a user has to act first.
	Begins time.Time
	// Why is the reason of Due and Held.
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
	// earliest is when the first healthy member can begin, once that was asked for.
	earliest *time.Time
	// oldest is since when the first member has waited that can't prove the change. It may have begun meanwhile.
	oldest time.Time
}

// Set adds a member, or replaces what is known about it.
func (s *Spread) Set(m Member) {
	if s.members == nil {
		s.members, s.tally.in = map[string]Member{}, map[string]int{}
	}
	s.Remove(m.ID)
	s.members[m.ID] = m
	s.count(m, 1)
	if m.Standing == Ready && !m.proves() && (s.oldest.IsZero() || m.Begins.Before(s.oldest)) {
		s.oldest = m.Begins
	}
}

func (s *Spread) count(m Member, n int) {
	s.tally.count(m, n)
	if m.isCandidate() {
		s.earliest = nil
	}
}

// Remove drops a member that no longer uses the change.
func (s *Spread) Remove(id string) {
	if m, known := s.members[id]; known {
		s.count(m, -1)
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
	// Wait is how long a workload waits for a healthy one that hasn't begun, Proof how long a rollout may take
	// without progress, and Now the time.
	Wait, Proof time.Duration
	Now         time.Time
}

// Longest is how long a workload waits for the proof of others at most, whichever versions. It is several times what
// one rollout takes, because one that makes progress may take longer, and the next version may need another one.
func (l Limits) Longest() time.Duration { return 5 * (l.Wait + l.Proof) }

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
	case !s.Steps, m.AtOnce, len(s.members) <= Together:
		return true
	case t.proven == 0 && s.awaitsProof(m, l):
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

// awaitsProof reports whether another member has to prove the change before this one begins.
func (s *Spread) awaitsProof(m Member, l Limits) bool {
	if m.proves() {
		return s.tally.first > 0 && !m.First
	}
	return s.Expects(m, l)
}

// Expects reports whether a member that can prove the change rolls, or can begin, before this one has
// waited for too long.
//
// Ready since 10:00:00, with a limit of a minute: at 10:00:30 it waits for a healthy workload whose quiet
// window ends at 10:00:50, and not for one whose window opens at 10:05. At 10:01 it doesn't wait for one that
// could have begun at 10:00:50, and waits for its turn in another change.
func (s *Spread) Expects(m Member, l Limits) bool {
	if s.tally.proving > 0 {
		return l.Now.Before(m.Begins.Add(l.Longest()))
	}
	latest, begins := m.Latest(l), s.begins()
	return l.Now.Before(latest) && !begins.IsZero() && !begins.After(latest)
}

// Latest is until when the member waits for a healthy one to begin.
func (m Member) Latest(l Limits) time.Time { return m.Begins.Add(l.Wait) }

// IsOverdue reports whether a member that can't prove the change has waited for as long as a stuck rollout keeps its
// place. Healthy ones don't begin before it any more: each of them could get stuck too.
func (m Member) IsOverdue(l Limits) bool {
	return !m.Able && !l.Now.Before(m.Begins.Add(max(l.Wait, l.Proof)))
}

// Canary is the member that a user wants to be the first, if this one waits for nothing else and that one
// isn't expected to begin.
func (s *Spread) Canary(m Member, l Limits) (canary Member, waits bool) {
	if !s.Steps || m.AtOnce || m.First || len(s.members) <= Together || s.tally.proven > 0 || s.tally.first == 0 || !m.proves() || s.Expects(m, l) {
		return Member{}, false
	}
	for _, other := range s.members {
		if other.isCanary() && (!waits || other.ID < canary.ID) {
			canary, waits = other, true
		}
	}
	return canary, waits
}

// HasCanary reports whether a member that a user wants to be the first is still to begin.
func (s *Spread) HasCanary() bool {
	for _, m := range s.members {
		if m.isCanary() {
			return true
		}
	}
	return false
}

func (m Member) isCanary() bool { return m.First && m.isCandidate() }

// begins is when the first member that can prove the change can begin, zero when none can. While a user
// wants some to be the first, only those count.
func (s *Spread) begins() time.Time {
	if s.earliest != nil {
		return *s.earliest
	}
	s.earliest = &time.Time{}
	for _, m := range s.members {
		if m.isCandidate() && (m.First || s.tally.first == 0) && (s.earliest.IsZero() || m.Begins.Before(*s.earliest)) {
			*s.earliest = m.Begins
		}
	}
	return *s.earliest
}

// isCandidate reports whether the member can prove the change, and will begin by itself.
func (m Member) isCandidate() bool {
	return m.Able && (m.Standing == Due || m.Standing == Ready) && !m.Begins.IsZero()
}

// proves reports whether the end of the member's rollout shows whether the change is good.
func (m Member) proves() bool { return m.Able && m.Healthy }

// isFull reports whether no member may start, whichever it is.
func (s *Spread) isFull(l Limits) bool {
	l.In = nil
	return !s.Room(Member{AtOnce: s.tally.atOnce > 0, Begins: cmp.Or(s.oldest, l.Now)}, l) && !s.Room(Member{Able: true, Healthy: true, First: true}, l)
}

// tally counts the members of a spread.
type tally struct {
	// waiting are due, and open are those that will ask for a turn, or return it, before an
	// event.
	waiting, open int
	// rolling have a turn, and in counts them by namespace.
	rolling int
	in      map[string]int
	// proving roll and can prove the change. first will do so by themselves, or do it, and a user
	// wants them to be the first.
	proving, first int
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
	t.waiting += is(Due, Ready, Held)
	t.open += is(Due, Ready, Rolling)
	t.rolling += is(Rolling)
	t.in[m.Namespace] += is(Rolling)
	t.proven += is(Proven)
	t.failed += is(Failed)
	if m.isBehind() {
		t.behind += n
	}
	if m.Able {
		t.proving += is(Rolling)
	}
	if m.First && (m.isCandidate() || m.Able && m.Standing == Rolling) {
		t.first += n
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

func (m Member) isBehind() bool { return m.Standing == Due && m.Why == input.AwaitsWorkload }

// IsWaiting reports whether the change is due for the member.
func (m Member) IsWaiting() bool {
	return m.Standing == Due || m.Standing == Ready || m.Standing == Held
}
