package settings

import "strings"

const (
	// MaxPatterns bounds the patterns of one annotation. Each is compared with the names
	// that begin like it.
	MaxPatterns = 64
	// MaxStars bounds the patterns that begin with a star, which are compared with every
	// name of the namespace.
	MaxStars = 8
	// MaxStarsEach bounds the stars of one pattern. A name is searched once for each.
	MaxStarsEach = 8
	// maxElements bounds the elements of one annotation, which can have 256 KiB.
	maxElements = 512
)

// matchStars reports whether a pattern matches a name. A star stands for any characters,
// and every other character for itself. path.Match takes a thousand times as long for
// patterns and names crafted to be slow, and every tenant would wait. Both ends are compared
// first, because that rejects most names.
func matchStars(pattern, name string) bool {
	first, pattern, star := strings.Cut(pattern, "*")
	name, found := strings.CutPrefix(name, first)
	if !star || !found {
		return found && name == ""
	}
	end := strings.LastIndexByte(pattern, '*')
	if name, found = strings.CutSuffix(name, pattern[end+1:]); !found {
		return false
	}
	for piece := range strings.SplitSeq(pattern[:max(end, 0)], "*") {
		if _, name, found = strings.Cut(name, piece); !found {
			return false
		}
	}
	return true
}
