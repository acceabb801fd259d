package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// manifestTypes are the supported types, best first: an index before one of its images.
func manifestTypes() []string {
	return []string{
		string(types.OCIImageIndex), string(types.DockerManifestList),
		string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
	}
}

// Platform is a platform for which an image exists.
type Platform struct {
	v1.Platform
	// Digest of the platform's image.
	Digest string
}

// Image lists the platforms of a digest.
type Image struct {
	Digest string
	// Index is true for an index of several images.
	Index     bool
	Platforms []Platform
	// config is the digest of the configuration of an image outside an index.
	config string
}

// For finds the image for a platform, the first of several, as in kube-image-deployer.
func (i Image) For(wanted v1.Platform) (Platform, bool) {
	at := slices.IndexFunc(i.Platforms, func(p Platform) bool { return satisfies(p.Platform, wanted) })
	if at < 0 {
		return Platform{}, false
	}
	return i.Platforms[at], true
}

// satisfies compares the fields that decide whether a program runs. arm64/v8 and amd64/v1 are
// these architectures' defaults without a variant; a wanted platform without a variant matches
// any.
func satisfies(has, wanted v1.Platform) bool {
	if has.OS != wanted.OS || has.Architecture != wanted.Architecture {
		return false
	}
	if wanted.OSVersion != "" && has.OSVersion != wanted.OSVersion {
		return false
	}
	return wanted.Variant == "" || variant(has) == variant(wanted)
}

func variant(p v1.Platform) string {
	if p.Architecture == "arm64" && p.Variant == "v8" || p.Architecture == "amd64" && p.Variant == "v1" {
		return ""
	}
	return p.Variant
}

// Digest queries the digest of a tag. If the registry doesn't report it, the digest is computed
// from the manifest.
func (c *Client) Digest(ctx context.Context, as keychain.Credential, repository tagspec.Repository, tag string) (string, error) {
	what := "digest of " + repository.String() + ":" + tag
	reply, err := c.do(ctx, as, call{
		what: what, kind: HeadRequest, method: http.MethodHead, repository: repository, path: "manifests/" + tag, accept: manifestTypes(),
	})
	if err != nil && !wasRefused(err, http.StatusMethodNotAllowed) {
		return "", err
	}
	var said string
	if err == nil {
		reply.Close()
		said = reply.header.Get("Docker-Content-Digest")
	}
	if said == "" {
		digest, _, err := c.manifest(ctx, as, repository, tag)
		return digest, err
	}
	if !isDigest(said) {
		return "", untrue(what, "%s answered with the digest %.80q", repository.Host, said)
	}
	return strings.Clone(said), nil
}

func isDigest(text string) bool {
	hash, err := v1.NewHash(text)
	return err == nil && hash.Algorithm == "sha256"
}

// manifest reads one by tag or digest, and verifies that it matches its digest.
func (c *Client) manifest(ctx context.Context, as keychain.Credential, repository tagspec.Repository, reference string) (digest string, body []byte, err error) {
	what := "manifest of " + repository.String() + ":" + reference
	byDigest := strings.HasPrefix(reference, "sha256:")
	if byDigest {
		what = "manifest of " + repository.String() + "@" + reference
	}
	reply, err := c.do(ctx, as, call{
		what: what, kind: ManifestRequest, method: http.MethodGet, repository: repository, path: "manifests/" + reference, accept: manifestTypes(), most: maxManifest,
	})
	if err != nil {
		return "", nil, err
	}
	defer reply.Close()
	body, err = reply.readAll()
	if err != nil {
		return "", nil, err
	}
	digest = digestOf(body)
	if byDigest && digest != reference {
		return "", nil, untrue(what, "%s sent a manifest with the digest %s", repository.Host, digest)
	}
	if said := reply.header.Get("Docker-Content-Digest"); said != "" && said != digest {
		return "", nil, untrue(what, "%s reports the digest %.80q, but it is %s", repository.Host, said, digest)
	}
	return digest, body, nil
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// document is the part of an index or of an image manifest that is read. Both are JSON objects.
type document struct {
	MediaType types.MediaType `json:"mediaType"`
	Manifests entries         `json:"manifests"`
	Config    struct {
		Digest string `json:"digest"`
	} `json:"config"`
}

// platform is the part of a platform that decides whether a program runs. An image configuration
// has the same fields.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Variant      string `json:"variant"`
	OSVersion    string `json:"os.version"`
}

// whole is the platform, or false if a part is longer than any that exists.
func (p platform) whole() (v1.Platform, bool) {
	longest := max(len(p.OS), len(p.Architecture), len(p.Variant), len(p.OSVersion))
	return v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, OSVersion: p.OSVersion}, longest <= maxPlatformText
}

// entries are the images of an index.
type entries []struct {
	Digest   string    `json:"digest"`
	Platform *platform `json:"platform"`
}

// errTooManyEntries means that an index has more than maxPlatforms entries.
var errTooManyEntries = errors.New("too many entries")

// UnmarshalJSON implements [json.Unmarshaler]. It stops at the limit: an entry of three bytes takes
// many times as much memory.
func (e *entries) UnmarshalJSON(text []byte) error {
	*e = nil
	if string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return errors.New("not an array")
	}
	for d.More() {
		if len(*e) == maxPlatforms {
			return errTooManyEntries
		}
		*e = append(*e, entries{{}}...)
		if err := d.Decode(&(*e)[len(*e)-1]); err != nil {
			return err
		}
	}
	return nil
}

// Image reads what a digest is, which never changes: an index with its platforms, or an image, whose
// platform [Client.WithPlatform] reads.
func (c *Client) Image(ctx context.Context, as keychain.Credential, repository tagspec.Repository, digest string) (Image, error) {
	_, body, err := c.manifest(ctx, as, repository, digest)
	if err != nil {
		return Image{}, err
	}
	what := "manifest of " + repository.String() + "@" + digest
	found, err := readManifest(body, digest)
	switch {
	case errors.Is(err, errTooManyEntries):
		return Image{}, c.exceeded(Platforms, what, "the index exceeds the limit of %d images", maxPlatforms)
	case err != nil:
		return Image{}, untrue(what, "%s sent %v", repository.Host, err)
	}
	return found, nil
}

// readManifest reads an index, or finds the digest of an image's configuration.
func readManifest(body []byte, digest string) (Image, error) {
	var d document
	err := json.Unmarshal(body, &d)
	if errors.Is(err, errTooManyEntries) {
		return Image{}, errTooManyEntries
	}
	if err == nil && (d.MediaType.IsIndex() || len(d.Manifests) > 0) {
		platforms, err := d.Manifests.platforms()
		return Image{Digest: digest, Index: true, Platforms: platforms}, err
	}
	if err != nil || !isDigest(d.Config.Digest) {
		return Image{}, errors.New("something that is neither an image nor an image index")
	}
	return Image{Digest: digest, config: strings.Clone(d.Config.Digest)}, nil
}

func (e entries) platforms() ([]Platform, error) {
	var all []Platform
	for _, m := range e {
		if !isDigest(m.Digest) {
			return nil, fmt.Errorf("an index with the digest %.80q", m.Digest)
		}
		p := v1.Platform{OS: "linux", Architecture: "amd64"} // the default for an entry without a platform
		if m.Platform != nil {
			read, ok := m.Platform.whole()
			if !ok {
				return nil, fmt.Errorf("an index with a platform of more than %d bytes", maxPlatformText)
			}
			p = read
		}
		if p.OS == "unknown" { // an attestation
			continue
		}
		all = append(all, Platform{p, m.Digest})
	}
	return all, nil
}

// WithPlatform reads the configuration of an image outside an index.
func (c *Client) WithPlatform(ctx context.Context, as keychain.Credential, repository tagspec.Repository, image Image) (Image, error) {
	config, what := image.config, "configuration of "+repository.String()+"@"+image.Digest
	reply, err := c.do(ctx, as, call{
		what: what, kind: BlobRequest, method: http.MethodGet, repository: repository, path: "blobs/" + config, accept: []string{"*/*"}, most: maxConfig,
	})
	if err != nil {
		return Image{}, err
	}
	defer reply.Close()
	body, err := reply.readAll()
	if err != nil {
		return Image{}, err
	}
	if digestOf(body) != config {
		return Image{}, untrue(what, "%s sent a configuration with the digest %s", repository.Host, digestOf(body))
	}
	p, ok := readConfig(body)
	if !ok {
		return Image{}, untrue(what, "%s sent a configuration without a platform", repository.Host)
	}
	image.Platforms = []Platform{{p, image.Digest}}
	return image, nil
}

// readConfig finds the platform in an image configuration.
func readConfig(body []byte) (v1.Platform, bool) {
	var file platform
	if json.Unmarshal(body, &file) != nil {
		return v1.Platform{}, false
	}
	p, ok := file.whole()
	return p, ok && p.OS != "" && p.Architecture != ""
}

// ParsePlatform reads "linux/arm64" or "linux/arm/v7".
func ParsePlatform(text string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("platform %q: want os/architecture, such as linux/amd64 or linux/arm/v7", text)
	}
	return *p, nil
}
