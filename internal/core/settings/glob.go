package settings

import "strings"

const (
	// MaxPatterns bounds the patterns of one annotation. Each is compared with the names
	// that begin like it.
	MaxPatterns = 64
	// MaxStars bounds the patterns that begin with a star, which are compared with every
	// name of the namespace.
	MaxStars = 8
	// maxElements bounds the elements of one annotation, which can have 256 KiB.
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
