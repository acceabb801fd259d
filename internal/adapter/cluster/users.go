package cluster

import (
	"maps"
	"slices"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// users is the index from sources to the workloads that a source change wakes.
type users struct {
	words settings.Vocabulary

	mu sync.RWMutex
	// exact holds workloads by each source that they name.
	exact map[place]map[kube.Key]struct{}
	// globs holds, by namespace, workloads that ask for sources by pattern.
	globs map[string]*globs
}

type place struct {
	namespace string
	source    input.ID
}

func newUsers(words settings.Vocabulary) *users {
	return &users{words: words, exact: map[place]map[kube.Key]struct{}{}, globs: map[string]*globs{}}
}

// of returns the workloads that use the source or ask for it, each once: a workload can name it
// and have many patterns that it matches.
func (u *users) of(namespace string, source input.ID) []kube.Key {
	u.mu.RLock()
	defer u.mu.RUnlock()
	keys := u.exact[place{namespace, source}]
	if globs := u.globs[namespace]; globs != nil {
		keys = maps.Clone(keys)
		if keys == nil {
			keys = map[kube.Key]struct{}{}
		}
		globs.addUsers(keys, source)
	}
	return slices.Collect(maps.Keys(keys))
}

// replace removes the old copy's sources and adds the new copy's. Either may be nil.
func (u *users) replace(old, now *kube.Workload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old != nil {
		u.remove(old)
	}
	if now != nil {
		u.insert(now)
	}
}

func (u *users) insert(w *kube.Workload) {
	exact, patterns := u.wishes(w)
	for _, source := range exact {
		at := place{w.Key.Namespace, source}
		if u.exact[at] == nil {
			u.exact[at] = map[kube.Key]struct{}{}
		}
		u.exact[at][w.Key] = struct{}{}
	}
	for _, p := range patterns {
		if u.globs[w.Key.Namespace] == nil {
			u.globs[w.Key.Namespace] = newGlobs()
		}
		u.globs[w.Key.Namespace].add(p, w.Key)
	}
}

func (u *users) remove(w *kube.Workload) {
	exact, patterns := u.wishes(w)
	for _, source := range exact {
		at := place{w.Key.Namespace, source}
		delete(u.exact[at], w.Key)
		if len(u.exact[at]) == 0 {
			delete(u.exact, at)
		}
	}
	for _, p := range patterns {
		u.globs[w.Key.Namespace].remove(p, w.Key)
	}
	if u.globs[w.Key.Namespace].isEmpty() {
		delete(u.globs, w.Key.Namespace)
	}
}

// wishes returns the sources that the workload names, and the patterns by which it lists others.
func (u *users) wishes(w *kube.Workload) (exact []input.ID, globs []settings.Pattern) {
	for _, ref := range w.Refs {
		exact = append(exact, ref.Source)
	}
	for _, p := range u.words.Intent(w.Annotations, nil).Listed {
		if p.IsGlob() {
			globs = append(globs, p)
		} else {
			exact = append(exact, input.ID(p))
		}
	}
	return exact, globs
}

// kindsOf returns the kinds of sources that the workload uses or lists.
func (u *users) kindsOf(w *kube.Workload) []input.Kind {
	var kinds []input.Kind
	for _, ref := range w.Refs {
		kinds = append(kinds, ref.Source.Kind)
	}
	for _, p := range u.words.Intent(w.Annotations, nil).Listed {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}
