package notification

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// maxImages bounds how many images one notification names.
const maxImages = 1000

// Format is how one kind of registry reports a push.
type Format struct {
	// Name is used in the path under which it arrives, and in metrics.
	Name string
	// images are the names of the pushed images, with or without a tag. A notification about
	// something else, such as a pull, names none. The registry is the host by which images
	// name it, which may differ from the sender's.
	images func(body []byte, registry string) ([]string, error)
}

// Formats are the known formats.
func Formats() []Format {
	return []Format{
		{Name: "distribution", images: distribution},
		{Name: "docker-hub", images: dockerHub},
		{Name: "ghcr", images: githubPackage},
		{Name: "generic", images: generic},
	}
}

// Repositories are those that were pushed to, each once. A name that no container can
// have makes the notification invalid. A non-empty registry replaces the host in the
// notification.
func (f Format) Repositories(body []byte, registry string) ([]tagspec.Repository, error) {
	images, err := f.images(body, registry)
	if err != nil {
		return nil, fmt.Errorf("read the notification: %w", err)
	}
	if len(images) > maxImages {
		return nil, fmt.Errorf("read the notification: it names more than %d images", maxImages)
	}
	var found []tagspec.Repository
	for _, image := range images {
		reference, err := tagspec.ParseReference(image)
		if err != nil {
			return nil, errors.New("read the notification: it names an image that cannot exist")
		}
		if !slices.ContainsFunc(found, func(r tagspec.Repository) bool { return r.String() == reference.Repository.String() }) {
			found = append(found, reference.Repository)
		}
	}
	return found, nil
}
