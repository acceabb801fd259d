package main

import (
	"cmp"
	"slices"
	"sync"
)

// group is the breaks that one test must notice. One worker tries them all, after it has seen
// the test pass without any of them.
type group struct {
	Package, Test string
	breaks        []Break
}

// queue distributes groups. A worker stays in a package while it has groups left, because
// most of the code that the next one needs is compiled then.
type queue struct {
	mu      sync.Mutex
	groups  map[string][]group
	workers map[string]int // in each package
}

func newQueue(breaks []Break) *queue {
	q := &queue{groups: map[string][]group{}, workers: map[string]int{}}
	for _, b := range breaks {
		groups := q.groups[b.Package]
		i := slices.IndexFunc(groups, func(g group) bool { return g.Test == b.Test })
		if i < 0 {
			i, groups = len(groups), append(groups, group{Package: b.Package, Test: b.Test})
		}
		groups[i].breaks = append(groups[i].breaks, b)
		q.groups[b.Package] = groups
	}
	return q
}

// next returns the next group for a worker whose last one was in a package. After that
// package it continues with the one that has the most groups and no other worker; when there
// is none, it helps another worker.
func (q *queue) next(last string) (group, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pkg := last
	if len(q.groups[last]) == 0 {
		q.workers[last]--
		if pkg = q.largest(); pkg == "" {
			return group{}, false
		}
		q.workers[pkg]++
	}
	g := q.groups[pkg][0]
	q.groups[pkg] = q.groups[pkg][1:]
	return g, true
}

// left returns the breaks that no worker has begun, by name.
func (q *queue) left() []Break {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []Break
	for _, groups := range q.groups {
		for _, g := range groups {
			left = append(left, g.breaks...)
		}
	}
	slices.SortFunc(left, func(a, b Break) int { return cmp.Compare(a.ID, b.ID) })
	return left
}

// largest is empty when no group is left.
func (q *queue) largest() string {
	var left []string
	for pkg, groups := range q.groups {
		if len(groups) > 0 {
			left = append(left, pkg)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return slices.MinFunc(left, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.workers[a], q.workers[b]), cmp.Compare(len(q.groups[b]), len(q.groups[a])), cmp.Compare(a, b))
	})
}
