package spread

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Before reports whether a workload has to wait for the named one, which goes first, in the
// changes that are due for it. If the named one can't be waited for, ignored describes why.
func Before(named string, changes []*Spread, known func(id string) bool) (wait bool, ignored string) {
	if !known(named) {
		return false, "doesn't exist or isn't followed"
	}
	for _, s := range changes {
		m, uses := s.Member(named)
		switch {
		case !uses:
		case m.Standing == Held, m.Standing == Due && m.Why == input.ReloadFailed:
			ignored = "waits for a user (" + string(m.Why) + ")"
		case m.Standing == Due, m.Standing == Ready, m.Standing == Rolling:
			return true, ""
		}
	}
	return false, ignored
}

// maxFollowed bounds how many names are followed from one workload.
const maxFollowed = 1000

// Cycle follows the names of the workloads that go first. It returns a cycle that the workload
// is part of, beginning with it, nil when there is none. The smallest name of a cycle breaks it:
// that workload doesn't wait for others.
func Cycle(from string, after func(id string) []string) (cycle []string, breaks bool) {
	// Each cycle has a smallest name, and is a way back to it over larger ones.
	if cycle = wayBack(from, from, after); cycle != nil {
		return cycle, true
	}
	return wayBack(from, "", after), false
}

// wayBack is the shortest way from a workload back to itself over names that aren't smaller than
// the bound.
func wayBack(from, bound string, after func(id string) []string) []string {
	names, reachedBy := []string{from}, map[string]string{}
	for i := 0; i < len(names) && i < maxFollowed; i++ {
		for _, next := range after(names[i]) {
			if next == from {
				return way(names[i], from, reachedBy)
			}
			if _, seen := reachedBy[next]; !seen && next >= bound {
				reachedBy[next] = names[i]
				names = append(names, next)
			}
		}
	}
	return nil
}

// way lists the names from one to another, found backwards.
func way(to, from string, reachedBy map[string]string) []string {
	names := []string{to}
	for to != from {
		to = reachedBy[to]
		names = append(names, to)
	}
	slices.Reverse(names)
	return names
}
