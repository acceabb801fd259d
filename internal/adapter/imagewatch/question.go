package imagewatch

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// Question asks which digest the newest wanted tag of a repository has.
type Question struct {
	Repository tagspec.Repository
	Spec       tagspec.Spec
	// Namespace is that of the workload. Namespaces are served in turn.
	Namespace string
	// Asker names the source of the credentials, such as a namespace and its pull secrets. The
	// same name means the same source.
	Asker string
	// Credentials are read at each check and not kept; nil means anonymous.
	Credentials keychain.Source
	// Running is the tag in use, or empty. A list that lacks it doesn't justify an older tag.
	Running string
	// Platforms have to be in the image; empty skips the check.
	Platforms []v1.Platform
	// Child selects the digest of the first platform's image, instead of the index digest.
	Child bool
}

// Key is equal for questions that share an answer.
func (q Question) Key() string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%v\n%t", q.Repository, q.Spec, q.Namespace, q.Asker, q.Running, q.Platforms, q.Child)
}

// Resolution is an answer.
type Resolution struct {
	// Tag that was chosen.
	Tag string
	// Digest to run: of the index or of the only image, or of one platform's.
	Digest string
	// At is when the registry responded.
	At time.Time
}

// View is the current state of a question. Reading it doesn't query a registry.
type View struct {
	// Resolution is the last answer; its Tag is empty if there was none.
	Resolution
	// Err is the error of the last check; nil if it succeeded.
	Err error
	// Asked is when the last check ended, Next when the next one starts.
	Asked, Next time.Time
}
