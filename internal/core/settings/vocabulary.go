package settings

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Vocabulary is a set of annotations in which users write requests: ours, or those of a
// tool that Lockstep replaces.
type Vocabulary interface {
	// Knows reports whether the annotation belongs to the vocabulary, on an object with
	// these labels.
	Knows(key string, labels map[string]string) bool
	// Intent reads the request for a workload.
	Intent(workload, namespace map[string]string) Intent
}

// Native is our own vocabulary, with the parts that are read of others.
type Native struct {
	Defaults Defaults
	// Others are further vocabularies for image requests.
	Others []ImageWords
	// Reads are those for reload requests.
	Reads []ReloadWords
}

// ImageWords are another tool's annotations that request images.
type ImageWords interface {
	// Knows is as in Vocabulary.
	Knows(key string, labels map[string]string) bool
	// Images are the requests for those containers for which asked is true, and the
	// annotations about them that aren't understood.
	Images(workload map[string]string, asked func(container string) bool) (requests []ImageRequest, refused []string)
}

// Knows implements Vocabulary.
func (n Native) Knows(key string, labels map[string]string) bool {
	return strings.HasPrefix(key, Prefix) && key != RolledOutBy || isForImages(key) ||
		slices.ContainsFunc(n.Others, func(other ImageWords) bool { return other.Knows(key, labels) }) ||
		slices.ContainsFunc(n.Reads, func(words ReloadWords) bool { return words.Knows(key) })
}

// Intent implements Vocabulary. Of two annotations for the same container our own wins, even
// when it isn't understood.
func (n Native) Intent(workload, namespace map[string]string) Intent {
	in := ForWorkload(workload, namespace, n.Defaults)
	for _, other := range n.Others {
		requests, refused := other.Images(workload, func(container string) bool {
			_, own := workload[ImagePrefix+container]
			return !own
		})
		in.Images, in.Mistakes.Refused = append(in.Images, requests...), append(in.Mistakes.Refused, refused...)
	}
	sorting.By(in.Images, func(a, b ImageRequest) int { return cmp.Compare(a.Container, b.Container) })
	slices.Sort(in.Mistakes.Refused)
	in.Mistakes.Lost = n.lost(workload)
	return in
}
