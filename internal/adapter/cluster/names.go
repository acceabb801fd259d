package cluster

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// names are the sorted names of the sources in namespaces whose workloads have patterns. A
// list is made when a pattern needs it, and again after a source was created or deleted.
type names struct {
	mu sync.Mutex
	// sorted holds them by namespace and kind.
	sorted map[place][]string
}

// withPrefix are the names with a prefix among the sources of the place's namespace and kind.
func (n *names) withPrefix(sources *mirror.Mirror[*kube.Source], at place, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := n.of(sources, at)
		first, _ := slices.BinarySearch(all, prefix)
		for _, name := range all[first:] {
			if !strings.HasPrefix(name, prefix) || !yield(name) {
				return
			}
		}
	}
}

// of never changes a list that it has returned. While it makes one, forget waits: a list that
// lacks a new source must not be kept.
func (n *names) of(sources *mirror.Mirror[*kube.Source], at place) []string {
	if sources == nil {
		return nil
	}
	at.source.Name = ""
	n.mu.Lock()
	defer n.mu.Unlock()
	all, known := n.sorted[at]
	if !known {
		sources.EachIn(at.namespace, func(s *kube.Source) { all = append(all, s.ID.Name) })
		slices.Sort(all)
		if n.sorted == nil {
			n.sorted = map[place][]string{}
		}
		n.sorted[at] = all
	}
	return all
}

// forget drops the list that has to contain, or to lack, a source.
func (n *names) forget(at place) {
	at.source.Name = ""
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sorted, at)
}
