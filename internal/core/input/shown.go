package input

import (
	"maps"
	"slices"
	"strings"
)

// Shown is what a pod template shows of the versions it was given, by source.
// In the annotation "~" stands between a source that is only tracked and its
// digest, "=" between one that is pinned and its digest.
type Shown map[ID]string

// ParseShown reads the annotation. People edit annotations, so what cannot be
// read is left out: a missing version means only that the template shows none.
func ParseShown(text string) Shown {
	shown := Shown{}
	for element := range strings.SplitSeq(text, ",") {
		cut := strings.IndexAny(element, "~=")
		if cut < 0 {
			continue
		}
		source, err := ParseSource(strings.TrimSpace(element[:cut]))
		if err != nil {
			continue
		}
		shown[source] = strings.TrimSpace(element[cut+1:])
	}
	return shown
}

// String writes the annotation, sorted, so that equal versions give equal
// templates and an undo finds its old revision again.
func (s Shown) String() string {
	elements := make([]string, 0, len(s))
	for _, source := range slices.SortedFunc(maps.Keys(s), func(a, b ID) int {
		return strings.Compare(a.String(), b.String())
	}) {
		elements = append(elements, source.String()+"~"+s[source])
	}
	return strings.Join(elements, ",")
}
