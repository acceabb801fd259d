package spread

import (
	"cmp"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Line lists those that wait for their turn in the order in which they are served: the
// namespace that was served least is next, and in a namespace the order is that of names.
func (s *Spread) Line() []Member {
	served := map[string]int{}
	var line []Member
	for _, m := range s.members {
		switch m.Standing {
		case Ready:
			line = append(line, m)
		case Rolling, Proven, Failed:
			served[m.Namespace]++
		case Has, Due, Held:
		}
	}
	sorting.By(line, func(a, b Member) int { return cmp.Or(isFirst(a.First, b.First), cmp.Compare(a.ID, b.ID)) })
	place := make(map[string]int, len(line))
	for _, m := range line {
		place[m.ID] = served[m.Namespace]
		served[m.Namespace]++
	}
	sorting.By(line, func(a, b Member) int {
		return cmp.Or(isFirst(a.First, b.First), cmp.Compare(place[a.ID], place[b.ID]), cmp.Compare(a.Namespace, b.Namespace))
	})
	return line
}

// isFirst compares two members by something that puts one of them before the others.
func isFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Admit lists the members that may start now, of those that wait for their turn in the spreads.
// Each needs room in all of the changes that it wants; a member that lacks it in one doesn't take
// the place of another member elsewhere.
func Admit(in []*Spread, wants func(id string) []*Spread, l Limits) []string {
	var started []string
	asked, moved := map[string]bool{}, map[string][]*Spread{}
	for _, s := range in {
		if s.isFull(l) {
			continue
		}
		line := s.Line()
		if s.tally.proven == 0 { // a workload that proves nothing overtakes one that can begin now only once it is overdue
			sorting.By(line, func(a, b Member) int {
				return cmp.Or(isFirst(a.IsOverdue(l), b.IsOverdue(l)), isFirst(a.proves(), b.proves()))
			})
		}
		isBehind := false // beside a healthy one that rolls, an overdue one would wait again, so that begins before
		for _, m := range line {
			if asked[m.ID] || isBehind && m.proves() {
				continue
			}
			asked[m.ID] = true
			if all := wants(m.ID); start(m.ID, all, l) {
				started, moved[m.ID] = append(started, m.ID), all
				isBehind = isBehind || s.tally.proven == 0 && m.IsOverdue(l)
			}
		}
	}
	for id, all := range moved { // only those that wait want a turn, so wants doesn't list them any more
		move(id, all, Ready)
	}
	return started
}

// start moves the member to Rolling in all changes that it wants, if it has room in all of them.
func start(id string, wants []*Spread, l Limits) bool {
	for _, s := range wants {
		if m := s.members[id]; m.Standing != Ready || !s.Room(m, l) {
			return false
		}
	}
	move(id, wants, Rolling)
	return len(wants) > 0
}

func move(id string, wants []*Spread, to Standing) {
	for _, s := range wants {
		m := s.members[id]
		m.Standing = to
		s.Set(m)
	}
}
