package tagspec

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxProgram bounds the size of a compiled regular expression. A repetition such as
// (x{1000}){9} is short to write and long to run for each of ten thousand tags.
const maxProgram = 1000

// parsePattern reads "/expression/" in RE2 syntax. It has to match the whole tag.
func parsePattern(text string) (Spec, error) {
	body, closed := strings.CutSuffix(text[1:], "/")
	if !closed || body == "" {
		return Spec{}, refuse(text, BadPattern, "isn't a regular expression between two slashes: write one such as /v(?P<n>\\d+)/")
	}
	tree, err := syntax.Parse(body, syntax.Perl)
	if err != nil {
		return Spec{}, refuse(text, BadPattern, "isn't a regular expression: %v", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return Spec{}, refuse(text, BadPattern, "isn't a regular expression: %v", err)
	}
	if len(program.Inst) > maxProgram {
		return Spec{}, refuse(text, TooLarge, "repeats too much: use a shorter expression, a tag has at most 128 characters")
	}
	expression, err := regexp.Compile(`\A(?:` + body + `)\z`)
	if err != nil {
		return Spec{}, refuse(text, BadPattern, "isn't a regular expression: %v", err)
	}
	// The prefix is computed without the anchors, which would hide it.
	bare, err := regexp.Compile(strings.TrimPrefix(body, "^"))
	if err != nil {
		return Spec{}, refuse(text, BadPattern, "isn't a regular expression: %v", err)
	}
	prefix, _ := bare.LiteralPrefix()
	return Spec{text: text, prefix: prefix, policy: pattern{expression, namedGroups(expression)}}, nil
}

func namedGroups(expression *regexp.Regexp) []int {
	var groups []int
	for i, name := range expression.SubexpNames() {
		if name != "" {
			groups = append(groups, i)
		}
	}
	if groups == nil {
		return []int{0} // the whole tag
	}
	return groups
}

// pattern accepts the tags that an expression matches, and compares its named groups from
// left to right in natural order; without one, the whole tag.
type pattern struct {
	*regexp.Regexp
	groups []int
}

func (p pattern) rank(tag string) (rank, bool) {
	match := p.FindStringSubmatch(tag)
	if match == nil {
		return nil, false
	}
	compared := make(texts, len(p.groups))
	for i, group := range p.groups {
		compared[i] = match[group]
	}
	return compared, true
}
