package input

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Mark is the version of one input that a pod template shows.
type Mark struct {
	// Digest is the version in its displayed form.
	Digest string
	// Pinned is true when pods of that template get this version and no other. For a
	// tracked input, each pod reads the version that is current when it starts.
	Pinned bool
}

// Tracked is the mark of an input that pods read when they start.
func Tracked(digest string) Mark {
	return Mark{Digest: digest}
}

// The marks in the annotation: "configmap/app~3fa9c1d2e4,image/web=sha256:77ab…".
const (
	trackedMark = "~"
	pinnedMark  = "="
)

// String is the mark and the digest, as they follow the input in the annotation.
func (m Mark) String() string {
	if m.Pinned {
		return pinnedMark + m.Digest
	}
	return trackedMark + m.Digest
}

// Shown are the delivered versions that a pod template shows, by input.
type Shown map[ID]Mark

const (
	// MaxShown is more bytes than Lockstep writes: those of maxMarks digests, kinds and names.
	MaxShown = 64 << 10
	// maxMarks is as many marks as Lockstep writes: of MaxInputs sources, and of the images that
	// annotations can ask for.
	maxMarks = MaxInputs + 128
)

// ParseShown parses the annotation. Users edit annotations, so it skips elements that it
// can't parse, and a text that is longer or has more marks than any of Lockstep's: a missing
// version means only that the template doesn't show one.
func ParseShown(text string) Shown {
	shown := Shown{}
	if len(text) > MaxShown {
		return shown
	}
	for element := range strings.SplitSeq(text, ",") {
		cut := strings.IndexAny(element, trackedMark+pinnedMark)
		if cut < 0 {
			continue
		}
		id, err := ParseID(strings.TrimSpace(element[:cut]))
		if err != nil {
			continue
		}
		// Parts of the text would keep it whole.
		id.Name = strings.Clone(id.Name)
		shown[id] = Mark{Digest: strings.Clone(strings.TrimSpace(element[cut+1:])), Pinned: element[cut:cut+1] == pinnedMark}
		if len(shown) > maxMarks {
			return Shown{}
		}
	}
	return shown
}

// String writes the annotation, sorted, so equal versions lead to equal templates and an
// undo finds its old revision again.
func (s Shown) String() string {
	elements := make([]string, 0, len(s))
	for _, id := range sorting.Keys(s, func(a, b ID) int {
		return strings.Compare(a.String(), b.String())
	}) {
		elements = append(elements, id.String()+s[id].String())
	}
	return strings.Join(elements, ",")
}

// Marks are the digests of a template's marks, by those of their inputs. They are what is kept of
// revisions and pods, which can be many and show 64 KiB each.
type Marks map[uint64]uint64

// Marks reduces the marks to digests.
func (s Shown) Marks() Marks {
	marks := make(Marks, len(s))
	for id, mark := range s {
		if mark != (Mark{}) {
			marks[sum(id.String())] = sum(mark.String())
		}
	}
	return marks
}

// Show reports whether the input has that mark. The zero mark means that it has none.
func (m Marks) Show(id ID, mark Mark) bool {
	has, shown := m[sum(id.String())]
	if mark == (Mark{}) {
		return !shown
	}
	return has == sum(mark.String())
}

func sum(text string) uint64 {
	all := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(all[:])
}
