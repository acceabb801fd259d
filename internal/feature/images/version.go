package images

import (
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// versionOf is the version of an image, zero when its digest isn't known.
func versionOf(p Pin) fingerprint.Version {
	basis, sum, found := strings.Cut(p.Digest, ":")
	if !found {
		return fingerprint.Version{}
	}
	return fingerprint.Version{Basis: basis, Sum: sum}
}

// Short shortens the digest in an image for display: "app:1.4@77ab01c9de".
func Short(image string) string {
	name, digest, found := strings.Cut(image, "@")
	if !found {
		return image
	}
	return name + "@" + versionOf(Pin{Digest: digest}).Short()
}

// digestOf is the digest of a version.
func digestOf(v fingerprint.Version) string {
	if v.IsZero() {
		return ""
	}
	return v.String()
}

// markOf is the mark in a template to which the image was delivered. It includes the
// whole digest, from which a pod can be created.
func markOf(p Pin) input.Mark {
	if p.Digest == "" {
		return input.Mark{}
	}
	return input.Mark{Digest: p.Digest, Pinned: true}
}
