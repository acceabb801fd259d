package tagspec

import (
	"errors"

	"github.com/distribution/reference"
)

// Reference is a container's parsed image field.
type Reference struct {
	Repository Repository
	// Tag and Digest are empty if missing.
	Tag, Digest string
}

// ParseReference reads the image of a container as the kubelet does.
func ParseReference(text string) (Reference, error) {
	named, err := normalized(text)
	if err != nil {
		return Reference{}, refuse(text, BadRepository, "isn't an image: %v", err)
	}
	r := Reference{Repository: Repository{Written: reference.FamiliarName(named), Host: reference.Domain(named), Path: reference.Path(named)}}
	if tagged, ok := named.(reference.Tagged); ok {
		r.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		r.Digest = digested.Digest().String()
	}
	return r, nil
}

// normalized is the name as the kubelet reads it. The library takes "a.b_c/app" for a path
// without a host, because a host has no underscore.
func normalized(text string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err == nil && reference.Domain(named) == "" {
		return nil, errors.New("the part before the first slash can't be a host")
	}
	return named, err
}

// Allows reports whether a reference is of the repository and of a wanted tag. A
// reference with only a digest is allowed.
func (i Image) Allows(r Reference) bool {
	if r.Repository.String() != i.Repository.String() {
		return false
	}
	return i.Spec.Matches(r.Tag) || r.Tag == "" && r.Digest != ""
}
