package tagspec

import (
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
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Reference{}, refuse(text, BadRepository, "is no image: %v", err)
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

// Allows reports whether a reference is of the repository and of a wanted tag. A
// reference with only a digest is allowed.
func (i Image) Allows(r Reference) bool {
	if r.Repository.String() != i.Repository.String() {
		return false
	}
	return i.Spec.Matches(r.Tag) || r.Tag == "" && r.Digest != ""
}
