package input

import (
	"maps"
	"slices"
	"strings"
)

// Mark is what a pod template shows of one input.
type Mark struct {
	// Digest is the version in the form that people see.
	Digest string
	// Pinned is true when pods of that template get this version and no other. An
	// input that is only tracked is read by each pod as it is when the pod starts.
	Pinned bool
}

// Tracked is the mark of an input that pods read as it is when they start.
func Tracked(digest string) Mark {
	return Mark{Digest: digest}
}

// The marks in the annotation: "configmap/app~3fa9c1d2e4,image/web=sha256:77ab…".
const (
	trackedMark = "~"
	pinnedMark  = "="
)

// String is the mark and the digest, as the annotation has them after the input.
func (m Mark) String() string {
	if m.Pinned {
		return pinnedMark + m.Digest
	}
	return trackedMark + m.Digest
}

// Shown is what a pod template shows of the versions it was given, by input.
type Shown map[ID]Mark

// ParseShown reads the annotation. People edit annotations, so what cannot be
// read is left out: a missing version means only that the template shows none.
func ParseShown(text string) Shown {
	shown := Shown{}
	for element := range strings.SplitSeq(text, ",") {
		cut := strings.IndexAny(element, trackedMark+pinnedMark)
		if cut < 0 {
			continue
		}
		id, err := ParseID(strings.TrimSpace(element[:cut]))
		if err != nil {
			continue
		}
		shown[id] = Mark{Digest: strings.TrimSpace(element[cut+1:]), Pinned: element[cut:cut+1] == pinnedMark}
	}
	return shown
}

// String writes the annotation, sorted, so that equal versions give equal
// templates and an undo finds its old revision again.
func (s Shown) String() string {
	elements := make([]string, 0, len(s))
	for _, id := range slices.SortedFunc(maps.Keys(s), func(a, b ID) int {
		return strings.Compare(a.String(), b.String())
	}) {
		elements = append(elements, id.String()+s[id].String())
	}
	return strings.Join(elements, ",")
}
