package fingerprint

// Before is the version of the given keys as the algorithm before this one made it,
// zero when there was none.
func (c Content) Before(keys Keys) Version {
	if c.before == "" {
		return Version{}
	}
	return c.version(c.before, nil, keys)
}

// Rebase measures a version that the algorithm before this one made in the way of this
// one, so that the two can be compared: the current version when the content is still
// the same, and otherwise one that differs from it. Versions of any other basis are
// returned as they are.
func (c Content) Rebase(v Version, keys Keys) Version {
	before := c.Before(keys)
	switch {
	case before.IsZero() || v.Basis != before.Basis:
		return v
	case v == before:
		return c.Version(keys)
	}
	return Version{Basis: c.Version(keys).Basis, Sum: v.Sum}
}
