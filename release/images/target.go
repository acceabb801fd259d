package images

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Target is the destination of images: a repository whose last part names the controller,
// such as registry.example/team/lockstep, and the common tag. The other images are next to
// it: registry.example/team/lockstep-sync.
type Target struct {
	controller name.Repository
	version    string
}

// ParseTarget parses a repository and a tag. It never guesses the registry.
func ParseTarget(image, version string) (Target, error) {
	if image == "" {
		return Target{}, errors.New("IMAGE is not set: it names a registry and a repository there, as in IMAGE=registry.example/team/lockstep")
	}
	repository, err := name.NewRepository(image, name.StrictValidation)
	if err != nil || strings.Contains(image, "://") || strings.HasSuffix(image, "/") {
		return Target{}, fmt.Errorf("IMAGE=%s: want a registry and a repository without a tag, as in registry.example/team/lockstep, in lower case, without https://", image)
	}
	if _, err := name.NewTag(image+":"+version, name.StrictValidation); err != nil {
		return Target{}, fmt.Errorf("VERSION=%s cannot be a tag: want at most 128 letters, digits, dots, dashes and underscores", version)
	}
	return Target{controller: repository, version: version}, nil
}

// Registry is the host, with its port, that images are pushed to.
func (t Target) Registry() string { return t.controller.RegistryStr() }

func (t Target) repository(image Image) name.Repository {
	path := t.controller.RepositoryStr() + strings.TrimPrefix(image.Name, Controller)
	return t.controller.Repo(path)
}

func (t Target) tag(image Image) name.Tag { return t.repository(image).Tag(t.version) }
