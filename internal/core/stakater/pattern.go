package stakater

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Anyone who may edit a workload controls its lists of patterns. These limits keep the time to
// match a name well below a second, even for a list that is made to be slow.
const (
	// maxList and maxItem are in bytes.
	maxList = 64 << 10
	maxItem = 1 << 10
	// maxWeight is for all expressions of a list together.
	maxWeight = 32 << 10
)

// pattern is one item of a list: a name, or an expression.
type pattern struct {
	name       string
	expression *regexp.Regexp
}

func (p pattern) matches(name string) bool {
	if p.expression == nil {
		return p.name == name
	}
	return p.expression.MatchString(name)
}

// usable are the patterns of a list, without those that are skipped.
func usable(list string) []pattern {
	var all []pattern
	for p, err := range patterns(list) {
		if err == nil {
			all = append(all, p)
		}
	}
	return all
}

// patterns yields the patterns of a list, and an error for each item that is skipped.
func patterns(list string) iter.Seq2[pattern, error] {
	return func(yield func(pattern, error) bool) {
		read, left := beginning(list), maxWeight
		for item := range strings.SplitSeq(read, ",") {
			item = strings.TrimSpace(item)
			if item != "" && !yield(parse(item, &left)) {
				return
			}
		}
		if len(read) < len(list) {
			yield(pattern{}, fmt.Errorf("the list is longer than %d bytes; the rest is skipped", maxList))
		}
	}
}

// beginning is the list up to the last whole item that fits.
func beginning(list string) string {
	if len(list) <= maxList {
		return list
	}
	return list[:max(0, strings.LastIndexByte(list[:maxList+1], ','))]
}

// parse reads one item, and takes the weight of its expression from what is left. The
// expression isn't grouped, as in the original: a|b matches every name that begins with a or
// ends with b.
func parse(item string, left *int) (pattern, error) {
	if !strings.ContainsAny(item, `\.+*?()|[]{}^$`) {
		return pattern{name: item}, nil
	}
	if len(item) > maxItem || *left < 0 {
		return pattern{}, skippedError{item, "is too long, or the list before it too complex"}
	}
	text := "^" + item + "$"
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		*left -= len(text)
		return pattern{}, skippedError{item, "is invalid" + because(err)}
	}
	if *left -= weight(tree); *left < 0 {
		return pattern{}, skippedError{item, "is too complex"}
	}
	expression, err := regexp.Compile(text)
	return pattern{expression: expression}, err
}

// skippedError is about an item that isn't used.
type skippedError struct {
	item, reason string
}

// Error implements error.
func (e skippedError) Error() string {
	return fmt.Sprintf("the pattern %s %s", quote(e.item), e.reason)
}

// weight is about the number of instructions of the compiled expression: a{1000} is short, and
// heavy.
func weight(tree *syntax.Regexp) int {
	sum := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		sum += weight(sub)
	}
	if tree.Op == syntax.OpRepeat {
		sum *= max(tree.Min, tree.Max, 1)
	}
	return sum
}

// because is the cause alone, without the expression that it quotes.
func because(err error) string {
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return ": " + string(bad.Code)
	}
	return ""
}
