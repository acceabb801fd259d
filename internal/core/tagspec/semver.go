package tagspec

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// parseRange reads a range of semantic versions. Pre-releases are in it only if it names
// one: ">=1.4.0-0" includes them all.
func parseRange(text string) (Spec, error) {
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return Spec{}, refuse(text, BadRange, "isn't a version range (%v): write one such as ^1.4, ~2.1 or >=1 <3", err)
	}
	return Spec{text: text, policy: versions{constraints}}, nil
}

// versions accepts the versions of a range.
type versions struct{ *semver.Constraints }

// rank accepts tags with two or three numbers, with or without a leading v, as versions.
// A single number isn't accepted: it is often a date or a build, and 20240131 would beat
// every release.
func (v versions) rank(tag string) (rank, bool) {
	core, _, _ := strings.Cut(tag, "-")
	if !strings.Contains(core, ".") {
		return nil, false
	}
	version, err := semver.NewVersion(tag)
	if err != nil || !v.Check(version) {
		return nil, false
	}
	return numbered{version, strings.Count(core, ".")}, true
}

// numbered is a version and how many dots it was written with: 1.4.0 is more precise than
// 1.4, a tag that often follows the newest 1.4 release.
type numbered struct {
	*semver.Version
	dots int
}

func (n numbered) compare(other rank) int {
	o, ok := other.(numbered)
	if !ok {
		return 0
	}
	if order := n.Compare(o.Version); order != 0 {
		return order
	}
	return n.dots - o.dots
}
