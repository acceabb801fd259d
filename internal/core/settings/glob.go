package settings

import (
	"path"
	"strings"
)

const (
	// MaxPatterns bounds the patterns of one annotation. Each is compared with every
	// source of the namespace.
	MaxPatterns = 64
	// maxElements bounds what is read of one annotation, which can have 256 KiB.
	maxElements = 512
)

// matchGlob is path.Match. A pattern that has nothing but stars, as nearly every one, is
// matched piece by piece: path.Match tries a long piece at every place of the name, which
// takes a thousand times as long for names that are made for it.
func matchGlob(pattern, name string) bool {
	if strings.ContainsAny(pattern, `?[\`) {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	}
	pieces := strings.Split(pattern, "*")
	last := len(pieces) - 1
	name, found := strings.CutPrefix(name, pieces[0])
	if !found || last == 0 {
		return found && name == ""
	}
	for _, piece := range pieces[1:last] {
		if _, name, found = strings.Cut(name, piece); !found {
			return false
		}
	}
	return strings.HasSuffix(name, pieces[last])
}
