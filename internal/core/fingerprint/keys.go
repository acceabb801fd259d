package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Keys is the set of keys of one source that a workload uses: all of them, or
// the named ones. The zero value names none.
type Keys struct {
	all   bool
	names []string
}

// AllKeys is the set that every key belongs to, even one that is added later.
func AllKeys() Keys {
	return Keys{all: true}
}

// SomeKeys is the set of exactly the given keys.
func SomeKeys(names ...string) Keys {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return Keys{names: slices.Compact(sorted)}
}

// Union returns the keys that any of the sets holds.
func Union(sets ...Keys) Keys {
	var names []string
	for _, k := range sets {
		if k.all {
			return k
		}
		names = append(names, k.names...)
	}
	return SomeKeys(names...)
}

// Size is about how many bytes the set needs.
func (k Keys) Size() int {
	const perName = 16
	size := 0
	for _, name := range k.names {
		size += perName + len(name)
	}
	return size
}

// Has reports whether the set holds the key.
func (k Keys) Has(name string) bool {
	if k.all {
		return true
	}
	_, found := slices.BinarySearch(k.names, name)
	return found
}

// ID is a short text that is equal for equal sets: "*" for all keys, otherwise
// eight hex digits. It is stored beside a sum, so it must not grow with the set.
func (k Keys) ID() string {
	if k.all {
		return "*"
	}
	h := fields{Hash: sha256.New()}
	for _, name := range k.names {
		h.text(name)
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Names lists the named keys, sorted; none when the set holds all of them.
func (k Keys) Names() []string {
	return slices.Clone(k.names)
}
