package fingerprint

import (
	"fmt"
	"strings"
)

const (
	absent  = "absent"
	unknown = "unknown"
)

// shortSize is how many hex digits of a sum people and templates see.
const shortSize = 10

// Version is the state of one source as one workload sees it. The zero value
// means that nothing is known.
type Version struct {
	// Basis is what the sum was taken over and how: "1:*" is algorithm 1 over
	// all keys.
	Basis string
	// Sum is the digest in hex, "absent" for an object that does not exist, or
	// "unknown" for content that nobody saw.
	Sum string
}

// ParseVersion reads what String wrote.
func ParseVersion(text string) (Version, error) {
	cut := strings.LastIndexByte(text, ':')
	if cut < 0 || !strings.Contains(text[:cut], ":") {
		return Version{}, fmt.Errorf("parse version %q: want algorithm:keys:sum", text)
	}
	v := Version{Basis: text[:cut], Sum: text[cut+1:]}
	if v.Sum != absent && v.Sum != unknown && !isSum(v.Sum) {
		return Version{}, fmt.Errorf("parse version %q: %q is neither %q nor %q nor %d hex digits", text, v.Sum, absent, unknown, 2*sumSize)
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

// Unknown is a version of the same basis that no content has: whatever exists is a
// change of it.
func (v Version) Unknown() Version {
	return Version{Basis: v.Basis, Sum: unknown}
}

// Comparable reports whether a difference between the two means a change of
// content, and not of the way it was measured.
func (v Version) Comparable(other Version) bool {
	return v.Basis == other.Basis
}

// Short is what people and templates see of the sum.
func (v Version) Short() string {
	return v.Sum[:min(shortSize, len(v.Sum))]
}

func isSum(text string) bool {
	if len(text) != 2*sumSize {
		return false
	}
	return strings.Trim(text, "0123456789abcdef") == ""
}
