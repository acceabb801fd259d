package settings

import "strings"

const (
	// MaxPatterns bounds the patterns of one annotation. Each is compared with every
	// source of the namespace.
	MaxPatterns = 64
	// maxElements bounds how many elements of an annotation are read: it can be 256 KiB
	// long.
	maxElements = 512
)

// matchStars reports whether a pattern matches a name. A star stands for any characters,
// and every other character for itself. path.Match takes a thousand times as long for
// patterns and names crafted to be slow, and every tenant would wait.
func matchStars(pattern, name string) bool {
	first, pattern, star := strings.Cut(pattern, "*")
	name, found := strings.CutPrefix(name, first)
	if !star {
		return found && name == ""
	}
	for found {
		piece, rest, more := strings.Cut(pattern, "*")
		if !more {
			return strings.HasSuffix(name, piece)
		}
		_, name, found = strings.Cut(name, piece)
		pattern = rest
	}
	return false
}
