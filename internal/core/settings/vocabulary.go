package settings

import (
	"cmp"
	"slices"
	"strings"
)

// Vocabulary is a language in which people ask for things: ours, or that of a
// tool whose place we take.
type Vocabulary interface {
	// Knows reports whether the annotation belongs to the language, on an object with
	// these labels.
	Knows(key string, labels map[string]string) bool
	// Intent reads what is asked for a workload.
	Intent(workload, namespace map[string]string) Intent
}

// Native is our own language, with what is read of others.
type Native struct {
	Defaults Defaults
	// Others are further languages in which images are asked for.
	Others []ImageWords
}

// ImageWords are the language of another tool, as far as it asks for images.
type ImageWords interface {
	// Knows is that of a Vocabulary.
	Knows(key string, labels map[string]string) bool
	// Images are what is asked for those containers for which asked is true, and which
	// annotations about them cannot be understood.
	Images(workload map[string]string, asked func(container string) bool) (requests []ImageRequest, refused []string)
}

// Knows implements Vocabulary.
func (n Native) Knows(key string, labels map[string]string) bool {
	return strings.HasPrefix(key, Prefix) && key != RolledOutBy || isForImages(key) ||
		slices.ContainsFunc(n.Others, func(other ImageWords) bool { return other.Knows(key, labels) })
}

// Intent implements Vocabulary. Of two annotations for the same container our own wins, also
// when it cannot be understood.
func (n Native) Intent(workload, namespace map[string]string) Intent {
	in := ForWorkload(workload, namespace, n.Defaults)
	for _, other := range n.Others {
		requests, refused := other.Images(workload, func(container string) bool {
			_, own := workload[ImagePrefix+container]
			return !own
		})
		in.Images, in.Mistakes.Refused = append(in.Images, requests...), append(in.Mistakes.Refused, refused...)
	}
	slices.SortFunc(in.Images, func(a, b ImageRequest) int { return cmp.Compare(a.Container, b.Container) })
	slices.Sort(in.Mistakes.Refused)
	return in
}
