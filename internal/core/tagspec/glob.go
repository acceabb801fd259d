package tagspec

import (
	"regexp"
	"strings"
)

// maxStars bounds the numbers of a glob.
const maxStars = 16

// parseGlob reads a tag with stars. Each star stands for one digit or more, and the
// numbers are compared from left to right.
func parseGlob(text string) (Spec, error) {
	if !IsTag(strings.ReplaceAll(text, "*", "0")) {
		return Spec{}, refuse(text, BadTag, "isn't a tag with * in it: a tag consists of at most 128 letters, digits, \"_\", \".\" and \"-\"")
	}
	if strings.Contains(text, "**") {
		return Spec{}, refuse(text, BadTag, "contains two * in a row: a single * stands for any number of digits")
	}
	parts := strings.Split(text, "*")
	if len(parts)-1 > maxStars {
		return Spec{}, refuse(text, TooLarge, "contains * more than %d times", maxStars)
	}
	for i, part := range parts {
		parts[i] = literal(part)
	}
	expression, err := regexp.Compile(`\A` + strings.Join(parts, `([0-9]+)`) + `\z`)
	if err != nil {
		return Spec{}, refuse(text, BadTag, "isn't a tag with * in it: %v", err)
	}
	prefix, _, _ := strings.Cut(text, "*")
	return Spec{text: text, prefix: prefix, policy: glob{expression}}, nil
}

// glob accepts the tags that an expression of numbers matches.
type glob struct{ *regexp.Regexp }

func (g glob) rank(tag string) (rank, bool) {
	match := g.FindStringSubmatch(tag)
	if match == nil {
		return nil, false
	}
	return texts(match[1:]), true
}
