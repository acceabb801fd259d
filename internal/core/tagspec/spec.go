package tagspec

import (
	"regexp"
	"strings"
)

// maxSpec bounds a spec: a tag has at most 128 characters, and a regular expression
// that needs more than twice as many is a mistake.
const maxSpec = 256

// Spec selects the wanted tags and the newest of them. The zero value selects none.
type Spec struct {
	text   string
	prefix string
	policy policy
}

// policy is one form of a spec.
type policy interface {
	// rank reports whether a tag is wanted, and its rank for comparison.
	rank(tag string) (rank, bool)
}

// rank is what a wanted tag is compared by.
type rank interface {
	// compare is negative if this tag is older than that of another rank of the same
	// policy.
	compare(other rank) int
}

// Parse reads a spec.
func Parse(text string) (Spec, error) {
	switch {
	case text == "":
		return Spec{}, refuse(text, NoTag, "the tag is missing: write one, such as latest or 1.4.*")
	case len(text) > maxSpec:
		return Spec{}, refuse(text, TooLarge, "longer than %d characters", maxSpec)
	case strings.HasPrefix(text, "/"):
		return parsePattern(text)
	case strings.ContainsAny(text, "^~<>=!|, "):
		return parseRange(text)
	case strings.Contains(text, "*"):
		return parseGlob(text)
	case IsTag(text):
		return Spec{text: text, prefix: text, policy: exact(text)}, nil
	default:
		return Spec{}, refuse(text, BadTag, "isn't a tag: a tag consists of at most 128 letters, digits, \"_\", \".\" and \"-\", and doesn't begin with \".\" or \"-\"")
	}
}

// IsTag reports whether a registry may contain a tag of this name.
func IsTag(text string) bool {
	for i := range len(text) {
		c := text[i]
		word := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c) || c == '_'
		if !word && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return text != "" && len(text) <= 128
}

// String is the spec as it was written.
func (s Spec) String() string { return s.text }

// Exact is the tag, if the spec is one. Then no list of tags is needed.
func (s Spec) Exact() (tag string, ok bool) {
	e, ok := s.policy.(exact)
	return string(e), ok
}

// Prefix is what every wanted tag begins with; it may be empty.
func (s Spec) Prefix() string { return s.prefix }

// Matches reports whether a tag is wanted.
func (s Spec) Matches(tag string) bool {
	_, ok := s.Choose([]string{tag})
	return ok
}

// Choose finds the newest tag that is wanted, in whatever order they come. Of tags that
// compare equal ("1.1" and "1.01") it takes the shortest, then the first by its bytes.
func (s Spec) Choose(tags []string) (tag string, ok bool) {
	if s.policy == nil {
		return "", false
	}
	var newest rank
	for _, candidate := range tags {
		if !IsTag(candidate) {
			continue // A registry has returned a name that can't be a tag.
		}
		r, wanted := s.policy.rank(candidate)
		if !wanted {
			continue
		}
		if !ok || beats(r.compare(newest), candidate, tag) {
			tag, newest, ok = candidate, r, true
		}
	}
	return tag, ok
}

func beats(order int, candidate, tag string) bool {
	switch {
	case order != 0:
		return order > 0
	case len(candidate) != len(tag):
		return len(candidate) < len(tag)
	default:
		return candidate < tag
	}
}

// exact accepts one tag.
type exact string

func (e exact) rank(tag string) (rank, bool) { return sole{}, tag == string(e) }

// sole is the rank of the only tag.
type sole struct{}

func (sole) compare(rank) int { return 0 }

// literal quotes a text for a regular expression.
func literal(text string) string { return regexp.QuoteMeta(text) }
