package fingerprint

import "strings"

// Before is the version of the given keys by the previous algorithm, zero when there was
// none.
func (c Content) Before(keys Keys) Version {
	common := c.common()
	if common.before == "" {
		return Version{}
	}
	return c.version(common.before, nil, keys)
}

// Rebase converts a version of the previous algorithm to this one, so the two can be
// compared: the current version when the content is still the same, and otherwise one
// that differs from it. The same for a version from before the object got too many keys, or
// when it had too many: it has changed since. Versions of any other basis are returned unchanged.
func (c Content) Rebase(v Version, keys Keys) Version {
	now, before := c.Version(keys), c.Before(keys)
	switch {
	case v.IsZero() || v.Comparable(now):
		return v
	case v == before:
		return now
	case v.Comparable(before):
		return Version{Basis: now.Basis, Sum: v.Sum}
	case !v.covers(now) && !v.covers(before):
		return v
	case v.IsAbsent():
		return Version{Basis: now.Basis, Sum: absent}
	}
	return now.Unknown()
}

// covers reports whether two versions are of the same keys, though one of them may include all.
func (v Version) covers(other Version) bool {
	return strings.TrimSuffix(v.Basis, wholeMark) == strings.TrimSuffix(other.Basis, wholeMark)
}
