package fingerprint

import (
	"fmt"
	"strings"
)

const (
	absent  = "absent"
	unknown = "unknown"
)

// wholeMark ends the basis of some keys when the sum covers all of them.
const wholeMark = "+"

// digestBasis is the basis of an image's version: the digest of its manifest, computed by
// the registry.
const digestBasis = "sha256"

// digestDigits is the length of such a digest.
const digestDigits = 64

// shortSize is how many hex digits of a sum users and templates see.
const shortSize = 10

// Version is the state of one input as one workload sees it. The zero value
// means that nothing is known.
type Version struct {
	// Basis is what the sum covers and how: "1:*" is algorithm 1 over all keys of a
	// source, "1:0e1d55c7" over some, "1:0e1d55c7+" over all because the source has too many
	// to know these, "sha256" is the manifest of an image.
	Basis string
	// Sum is the digest in hex, "absent" for an object that does not exist, or
	// "unknown" for content that no process saw.
	Sum string
}

// ParseVersion parses String's output.
func ParseVersion(text string) (Version, error) {
	cut := strings.LastIndexByte(text, ':')
	if cut < 0 {
		return Version{}, fmt.Errorf("parse version %q: want algorithm:keys:sum or %s:digest", text, digestBasis)
	}
	v := Version{Basis: text[:cut], Sum: text[cut+1:]}
	digits := 2 * sumSize
	switch {
	case v.Basis == digestBasis:
		digits = digestDigits
	case !strings.Contains(v.Basis, ":"):
		return Version{}, fmt.Errorf("parse version %q: want algorithm:keys:sum or %s:digest", text, digestBasis)
	}
	if v.Sum != absent && v.Sum != unknown && !isHex(v.Sum, digits) {
		return Version{}, fmt.Errorf("parse version %q: %q is neither %q nor %q nor %d hex digits", text, v.Sum, absent, unknown, digits)
	}
	return v, nil
}

// String is the stored form, for example "1:*:3fa9c1d2e4…".
func (v Version) String() string {
	return v.Basis + ":" + v.Sum
}

// IsZero reports whether nothing is known.
func (v Version) IsZero() bool {
	return v == Version{}
}

// IsAbsent reports whether the object did not exist.
func (v Version) IsAbsent() bool {
	return v.Sum == absent
}

// KeyID names the key that the version was computed with, as [Hasher.KeyID] does. It is empty
// for a version without a key.
func (v Version) KeyID() string {
	algorithm, _, _ := strings.Cut(v.Basis, ":")
	_, id, _ := strings.Cut(algorithm, keyMark)
	return id
}

// IsContentOf reports whether the version identifies the content of these keys.
func (v Version) IsContentOf(keys Keys) bool {
	covered := strings.HasSuffix(v.Basis, ":"+keys.ID()) || keys.all && strings.HasSuffix(v.Basis, wholeMark)
	return covered && v.Sum != absent && v.Sum != unknown
}

// Unknown is a version of the same basis that no content has: any current version differs
// from it.
func (v Version) Unknown() Version {
	return Version{Basis: v.Basis, Sum: unknown}
}

// Comparable reports whether a difference between the two means a change of content, and
// not of how it was measured.
func (v Version) Comparable(other Version) bool {
	return v.Basis == other.Basis
}

// ComparedWith makes the version comparable with the current one of the same keys, if only one of
// them covers the whole object: its keys became too many, or few enough, so it has changed.
func (v Version) ComparedWith(now Version) Version {
	switch {
	case v.Comparable(now), strings.TrimSuffix(v.Basis, wholeMark) != strings.TrimSuffix(now.Basis, wholeMark):
		return v
	case v.IsAbsent():
		return Version{Basis: now.Basis, Sum: absent}
	}
	return now.Unknown()
}

// SameKeys reports whether both cover the same keys, whatever the algorithms. An object with too
// many keys is covered as a whole.
func (v Version) SameKeys(other Version) bool {
	_, keys, _ := strings.Cut(strings.TrimSuffix(v.Basis, wholeMark), ":")
	_, others, _ := strings.Cut(strings.TrimSuffix(other.Basis, wholeMark), ":")
	return keys == others
}

// Short is the part of the sum that users and templates see.
func (v Version) Short() string {
	return v.Sum[:min(shortSize, len(v.Sum))]
}

func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}
