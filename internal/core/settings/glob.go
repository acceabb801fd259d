package settings

import "strings"

const (
	// MaxPatterns bounds the patterns of one annotation. Each is compared with every
	// source of the namespace.
	MaxPatterns = 64
	// maxElements bounds what is read of one annotation, which can have 256 KiB.
	maxElements = 512
)

// matchStars reports whether a pattern means a name. A star stands for any characters,
// and nothing else for more than itself: path.Match takes a thousand times as long for
// patterns and names that are made for it, and every tenant would wait.
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
