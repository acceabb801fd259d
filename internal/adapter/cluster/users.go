package cluster

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// users is the index from sources to the workloads that a source change wakes.
type users struct {
	words settings.Vocabulary
	seed  maphash.Seed

	mu sync.RWMutex
	// exact holds the workloads that name a source, by the digest of its place. Most sources
	// have one user, and the names would take most of the memory. If two sources had the same
	// digest, each would wake the users of both, which is harmless.
	exact map[uint64][]*kube.Key
	// globs holds, by namespace, the patterns of each workload that has some.
	globs map[string]map[kube.Key][]settings.Pattern
}

type place struct {
	namespace string
	source    input.ID
}

func newUsers(words settings.Vocabulary) *users {
	return &users{words: words, seed: maphash.MakeSeed(), exact: map[uint64][]*kube.Key{}, globs: map[string]map[kube.Key][]settings.Pattern{}}
}

// of returns the workloads that use the source or ask for it, each once.
func (u *users) of(at place) []kube.Key {
	all := append(u.named(at), u.matched(at)...)
	slices.SortFunc(all, compareKeys)
	return slices.Compact(all)
}

// named returns the workloads that name the source.
func (u *users) named(at place) []kube.Key {
	u.mu.RLock()
	defer u.mu.RUnlock()
	list := u.exact[u.digest(at)]
	keys := make([]kube.Key, len(list))
	for i, key := range list {
		keys[i] = *key
	}
	return keys
}

// matched returns the workloads with a pattern that the source matches. It takes long when a
// namespace has very many patterns, and holds no lock meanwhile.
func (u *users) matched(at place) []kube.Key {
	type asking struct {
		key      kube.Key
		patterns []settings.Pattern
	}
	u.mu.RLock()
	all := make([]asking, 0, len(u.globs[at.namespace]))
	for key, patterns := range u.globs[at.namespace] {
		all = append(all, asking{key, patterns})
	}
	u.mu.RUnlock()
	var keys []kube.Key
	for _, w := range all {
		if slices.ContainsFunc(w.patterns, func(p settings.Pattern) bool { return p.Matches(at.source) }) {
			keys = append(keys, w.key)
		}
	}
	return keys
}

// hasPatterns reports whether a workload of the namespace has a pattern.
func (u *users) hasPatterns(namespace string) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return len(u.globs[namespace]) > 0
}

// replace removes the old copy's sources and adds the new copy's. Either may be nil.
func (u *users) replace(old, now *kube.Workload) {
	before, _ := u.wishes(old)
	after, patterns := u.wishes(now)
	u.mu.Lock()
	defer u.mu.Unlock()
	if old != nil {
		u.remove(old.Key, before)
	}
	if now != nil {
		u.insert(now.Key, after, patterns)
	}
}

// insert adds a workload to the users of each source. They are sorted, so that one of thousands
// is found quickly.
func (u *users) insert(key kube.Key, exact []input.ID, patterns []settings.Pattern) {
	for _, source := range exact {
		at := u.digest(place{key.Namespace, source})
		i, _ := u.find(at, key)
		u.exact[at] = slices.Insert(u.exact[at], i, &key)
	}
	if len(patterns) == 0 {
		return
	}
	if u.globs[key.Namespace] == nil {
		u.globs[key.Namespace] = map[kube.Key][]settings.Pattern{}
	}
	u.globs[key.Namespace][key] = patterns
}

func (u *users) remove(key kube.Key, exact []input.ID) {
	for _, source := range exact {
		at := u.digest(place{key.Namespace, source})
		if i, found := u.find(at, key); found {
			u.exact[at] = slices.Delete(u.exact[at], i, i+1)
		}
		if len(u.exact[at]) == 0 {
			delete(u.exact, at)
		}
	}
	delete(u.globs[key.Namespace], key)
	if len(u.globs[key.Namespace]) == 0 {
		delete(u.globs, key.Namespace)
	}
}

func (u *users) digest(at place) uint64 { return maphash.Comparable(u.seed, at) }

func (u *users) find(at uint64, key kube.Key) (index int, found bool) {
	return slices.BinarySearchFunc(u.exact[at], key, func(user *kube.Key, key kube.Key) int { return compareKeys(*user, key) })
}

func compareKeys(a, b kube.Key) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group), strings.Compare(a.Namespace, b.Namespace))
}

// wishes returns the sources that the workload names, each once, and the patterns by which it
// lists others. There are none when it lists more names than a workload can follow: it isn't
// rolled out until it lists fewer.
func (u *users) wishes(w *kube.Workload) (exact []input.ID, globs []settings.Pattern) {
	if w == nil {
		return nil, nil
	}
	for _, p := range u.words.Intent(w.Annotations, nil).Listed {
		if p.IsGlob() {
			globs = append(globs, p)
		} else {
			exact = append(exact, input.ID(p))
		}
	}
	if exact = once(exact); input.Excess(exact) != "" {
		return nil, nil
	}
	for _, ref := range w.Refs {
		exact = append(exact, ref.Source)
	}
	return once(exact), globs
}

func once(ids []input.ID) []input.ID {
	slices.SortFunc(ids, func(a, b input.ID) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return slices.Compact(ids)
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
