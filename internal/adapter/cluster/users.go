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
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
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
	// globs holds the patterns of each workload, by namespace, kind and prefix: a source is
	// compared only with those whose prefix its name has. prefixes counts, by namespace, the
	// prefixes of each length.
	globs    map[place]map[kube.Key][]settings.Pattern
	prefixes map[string]map[int]int
}

type place struct {
	namespace string
	source    input.ID
}

func newUsers(words settings.Vocabulary) *users {
	return &users{
		words: words, seed: maphash.MakeSeed(), exact: map[uint64][]*kube.Key{},
		globs: map[place]map[kube.Key][]settings.Pattern{}, prefixes: map[string]map[int]int{},
	}
}

// of returns the workloads that use the source or ask for it, each once.
func (u *users) of(at place) []kube.Key {
	all := append(u.named(at), u.matched(at)...)
	sorting.By(all, compareKeys)
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

// matched returns the workloads with a pattern that the source matches. A workload comes twice if
// patterns with different prefixes match. It takes long when a
// namespace has very many patterns, and holds no lock meanwhile.
func (u *users) matched(at place) []kube.Key {
	type asking struct {
		key      kube.Key
		patterns []settings.Pattern
	}
	var all []asking
	u.mu.RLock()
	for length := range u.prefixes[at.namespace] {
		if length > len(at.source.Name) {
			continue
		}
		for key, patterns := range u.globs[place{at.namespace, input.ID{Kind: at.source.Kind, Name: at.source.Name[:length]}}] {
			all = append(all, asking{key, patterns})
		}
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
	return len(u.prefixes[namespace]) > 0
}

// replace removes the old copy's sources and adds the new copy's. Either may be nil.
func (u *users) replace(old, now *kube.Workload) {
	exactBefore, globsBefore := u.wishes(old)
	exact, globs := u.wishes(now)
	u.mu.Lock()
	defer u.mu.Unlock()
	if old != nil {
		u.remove(old.Key, exactBefore, globsBefore)
	}
	if now != nil {
		u.insert(now.Key, exact, globs)
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
	for _, p := range patterns {
		at := beginning(key.Namespace, p)
		if u.globs[at] == nil {
			u.globs[at] = map[kube.Key][]settings.Pattern{}
			if u.prefixes[key.Namespace] == nil {
				u.prefixes[key.Namespace] = map[int]int{}
			}
			u.prefixes[key.Namespace][len(at.source.Name)]++
		}
		u.globs[at][key] = append(u.globs[at][key], p)
	}
}

func (u *users) remove(key kube.Key, exact []input.ID, patterns []settings.Pattern) {
	for _, source := range exact {
		at := u.digest(place{key.Namespace, source})
		if i, found := u.find(at, key); found {
			u.exact[at] = slices.Delete(u.exact[at], i, i+1)
		}
		if len(u.exact[at]) == 0 {
			delete(u.exact, at)
		}
	}
	for _, p := range patterns {
		at := beginning(key.Namespace, p)
		if u.globs[at] == nil {
			continue // An earlier pattern has the same prefix.
		}
		delete(u.globs[at], key)
		if len(u.globs[at]) > 0 {
			continue
		}
		delete(u.globs, at)
		lengths := u.prefixes[key.Namespace]
		if lengths[len(at.source.Name)]--; lengths[len(at.source.Name)] == 0 {
			delete(lengths, len(at.source.Name))
		}
		if len(lengths) == 0 {
			delete(u.prefixes, key.Namespace)
		}
	}
}

// beginning is where the sources that match a pattern begin.
func beginning(namespace string, p settings.Pattern) place {
	return place{namespace, input.ID{Kind: p.Kind, Name: p.Prefix()}}
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
	sorting.By(ids, func(a, b input.ID) int {
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
