package imagewatch

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Question is what someone wants to know: which digest does the newest wanted tag of a
// repository have?
type Question struct {
	Repository tagspec.Repository
	Spec       tagspec.Spec
	// Asker names where the credentials come from, such as a namespace and the names of
	// its pull secrets. The same name means the same source.
	Asker string
	// Credentials are read at each check and not kept; nil asks anonymously.
	Credentials keychain.Source
	// Running is the tag that is in use. A list of tags that came back without it is no
	// reason for an older one. May be empty.
	Running string
	// Platforms have to be in the image; empty does not look.
	Platforms []v1.Platform
	// Child asks for the digest of the image for the first of the platforms, instead of
	// that of the index.
	Child bool
}

// key is the same for questions that have one answer.
func (q Question) key() string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%v\n%t", q.Repository, q.Spec, q.Asker, q.Running, q.Platforms, q.Child)
}

// Resolution is an answer.
type Resolution struct {
	// Tag that was chosen.
	Tag string
	// Digest to run: of the index or of the only image, or of one platform's.
	Digest string
	// At is when the registry said so.
	At time.Time
}

// View is what is known of a question at a moment. Reading it asks no registry.
type View struct {
	// Resolution is the last answer; its Tag is empty if there was none.
	Resolution
	// Err is why the last check failed; nil if it did not.
	Err error
	// Asked is when the last check ended, Next when the next one begins.
	Asked, Next time.Time
}
