package tagspec

import (
	"strings"

	"github.com/distribution/reference"
)

// maxImage bounds an annotation's value: a repository has at most 255 characters.
const maxImage = 1024

// Image is a repository and which of its tags.
type Image struct {
	Repository Repository
	Spec       Spec
}

// String is the image as it was written.
func (i Image) String() string { return i.Repository.Written + ":" + i.Spec.String() }

// ParseImage reads "repository:spec", such as "registry.example:5000/team/app:1.4.*".
func ParseImage(text string) (Image, error) {
	if len(text) > maxImage {
		return Image{}, refuse(text, TooLarge, "longer than %d characters", maxImage)
	}
	if scheme, _, found := strings.Cut(text, "://"); found {
		return Image{}, refuse(text, BadRepository, "isn't an image: leave out %s://", scheme)
	}
	name, spec, found := cut(text)
	if strings.Contains(name, "@") || !strings.HasPrefix(spec, "/") && strings.Contains(spec, "@") {
		return Image{}, refuse(text, HasDigest, "names a digest, which never changes: name a tag, such as app:1.4.*, and Lockstep finds the digest")
	}
	if !found || spec == "" {
		return Image{}, refuse(text, NoTag, "doesn't name a tag: add one after a colon, such as app:latest or app:1.4.*")
	}
	repository, err := ParseRepository(name)
	if err != nil {
		return Image{}, err
	}
	parsed, err := Parse(spec)
	if err != nil {
		return Image{}, err
	}
	return Image{Repository: repository, Spec: parsed}, nil
}

// cut separates the repository from the spec. A registry's port is followed by a path, so
// its colon is never directly before a slash and never the last one. A regular expression
// begins with a slash and may contain colons.
func cut(text string) (name, spec string, found bool) {
	if name, spec, found = strings.Cut(text, ":/"); found {
		return name, "/" + spec, true
	}
	path := strings.LastIndex(text, "/") + 1
	colon := strings.IndexByte(text[path:], ':')
	if colon < 0 {
		return text, "", false
	}
	return text[:path+colon], text[path+colon+1:], true
}

// Repository is where images are stored, as it was written and as the kubelet reads it.
type Repository struct {
	// Written is the user's text: "nginx".
	Written string
	// Host is the registry with its port: "docker.io".
	Host string
	// Path is the repository in that registry: "library/nginx".
	Path string
}

// ParseRepository reads a repository as the kubelet does: "nginx" is
// docker.io/library/nginx, and a first element without a dot or a port is a registry
// only if it is "localhost".
func ParseRepository(text string) (Repository, error) {
	named, err := normalized(text)
	if err != nil {
		return Repository{}, refuse(text, BadRepository, "isn't a repository: %v", err)
	}
	if !reference.IsNameOnly(named) {
		return Repository{}, refuse(text, BadRepository, "is more than a repository: leave out tag and digest")
	}
	return Repository{Written: text, Host: reference.Domain(named), Path: reference.Path(named)}, nil
}

// String is the repository in full: "docker.io/library/nginx".
func (r Repository) String() string { return r.Host + "/" + r.Path }
