package fingerprint

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
// that differs from it. Versions of any other basis are returned unchanged.
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
