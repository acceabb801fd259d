package registry

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Anyone who may annotate a workload can name a registry, and a registry can send anything. These
// bounds limit what it can make this program keep or read.
const (
	// maxPages, maxTags and maxListBytes limit a list of tags. Its bytes are counted after
	// decompression, over all pages; no tag of it is kept.
	maxPages     = 2000
	maxTags      = 500_000
	maxListBytes = 16 << 20
	// maxTag is the specification's limit for a tag. Longer ones are left out.
	maxTag = 128

	// maxManifest and maxConfig limit a body: registries accept manifests up to 4 MiB.
	maxManifest = 4 << 20
	maxConfig   = 4 << 20
	// maxPlatforms limits an index, maxPlatformText each part of a platform.
	maxPlatforms    = 256
	maxPlatformText = 64

	// smallBody is how much of a body is read without counting it. Almost all manifests are
	// smaller, so they never wait for the large ones, which share maxInFlight. A resolver queries for
	// one namespace so few images at a time that there is room left for others.
	smallBody   = 64 << 10
	maxInFlight = 32 << 20

	// maxHosts limits the registries with state, maxSessions the credentials of each,
	// maxRepositories the repositories of all, and maxTokenBytes the tokens of one registry.
	maxHosts        = 256
	maxSessions     = 1024
	maxRepositories = 16_384
	maxTokenBytes   = 1 << 20
	// maxToken limits a token, maxRealm and maxService the parts of a challenge.
	maxToken   = 16 << 10
	maxRealm   = 2 << 10
	maxService = 256
	// maxText limits a registry's own words in an error.
	maxText = 200
)

// Bound is a limit that a registry reached. It is the label of a metric.
type Bound string

// The bounds.
const (
	// ListPages, ListTags and ListBytes are of a list of tags.
	ListPages Bound = "list-pages"
	ListTags  Bound = "list-tags"
	ListBytes Bound = "list-bytes"
	// TagLength is of a single tag, which is left out.
	TagLength Bound = "tag-length"
	// BodyBytes is of a manifest or an image configuration.
	BodyBytes Bound = "body-bytes"
	// Platforms is of an index.
	Platforms Bound = "platforms"
	// CachedPlatforms is of the platforms that are remembered.
	CachedPlatforms Bound = "cached-platforms"
	// InFlight is of the bytes of large bodies from all registries at the same time.
	InFlight Bound = "in-flight-bytes"
	// Hosts is of the registries that are queried, NamespaceHosts of those of one namespace, and
	// NamespaceImages of its images.
	Hosts           Bound = "registries"
	NamespaceHosts  Bound = "registries-of-namespace"
	NamespaceImages Bound = "images-of-namespace"
	// Credentials is of those that are tried for one image, PullSecrets of the Secrets that are read for
	// one workload.
	Credentials Bound = "credentials"
	PullSecrets Bound = "pull-secrets"
)

// Bounds lists all bounds.
func Bounds() []Bound {
	return []Bound{ListPages, ListTags, ListBytes, TagLength, BodyBytes, Platforms, CachedPlatforms, InFlight, Hosts, NamespaceHosts, NamespaceImages, Credentials, PullSecrets}
}

// exceeded makes the error of a bound, and counts it.
func (c *Client) exceeded(bound Bound, what, answer string, args ...any) *Error {
	c.options.Exceeded(bound)
	e := &Error{Kind: TooLarge, Bound: bound, What: what, Answer: fmt.Sprintf(answer, args...)}
	switch bound {
	case ListPages, ListTags, ListBytes:
		e.Advice = "the list is not used: request an exact tag, or delete old tags"
	case Hosts:
		e.Advice = "use a registry that other images come from, or ask an administrator to remove images from unused registries"
	case InFlight:
		e.Kind, e.Advice = Limited, "Lockstep tries again later"
	default:
		e.Advice = "the answer is not used: contact the owner of the registry"
	}
	return e
}

// printable makes a registry's words safe to print and to keep: one line of limited length, which
// doesn't hold on to a longer text.
func printable(text string) string {
	cut := len(text) > maxText
	if cut {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.Clone(text))
	if cut {
		return text + "…"
	}
	return text
}

// idle is how long something that isn't used any more is remembered.
func (o Options) idle() time.Duration { return 2*o.Interval + 5*time.Minute }
