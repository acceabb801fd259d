package main

import (
	"cmp"
	"slices"
	"sync"
)

// queue distributes breaks. A worker stays in a package while it has breaks left, because
// most of the code that the next one needs is compiled then.
type queue struct {
	mu      sync.Mutex
	groups  map[string][]Break
	workers map[string]int // in each package
}

func newQueue(breaks []Break) *queue {
	q := &queue{groups: map[string][]Break{}, workers: map[string]int{}}
	for _, b := range breaks {
		q.groups[b.Package] = append(q.groups[b.Package], b)
	}
	return q
}

// next returns the next break for a worker whose last one was in a package. After that
// package it continues with the one that has the most breaks and no other worker; when there
// is none, it helps another worker.
func (q *queue) next(last string) (Break, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pkg := last
	if len(q.groups[last]) == 0 {
		q.workers[last]--
		if pkg = q.largest(); pkg == "" {
			return Break{}, false
		}
		q.workers[pkg]++
	}
	b := q.groups[pkg][0]
	q.groups[pkg] = q.groups[pkg][1:]
	return b, true
}

// largest is empty when no break is left.
func (q *queue) largest() string {
	var left []string
	for pkg, group := range q.groups {
		if len(group) > 0 {
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
