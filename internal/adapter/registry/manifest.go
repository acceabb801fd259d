package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// maxManifest and maxConfig limit reads: registries accept manifests up to 4 MiB.
	maxManifest = 4 << 20
	maxConfig   = 8 << 20
	// maxPlatforms limits an index.
	maxPlatforms = 1000
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
	response, err := c.do(ctx, as, call{
		what: what, kind: HeadRequest, method: http.MethodHead, repository: repository, path: "manifests/" + tag, accept: manifestTypes(),
	})
	if err != nil && !wasRefused(err, http.StatusMethodNotAllowed) {
		return "", err
	}
	var said string
	if err == nil {
		closeBody(response)
		said = response.Header.Get("Docker-Content-Digest")
	}
	if said == "" {
		digest, _, err := c.manifest(ctx, as, repository, tag)
		return digest, err
	}
	if !isDigest(said) {
		return "", untrue(what, "%s answered with the digest %.80q", repository.Host, said)
	}
	return said, nil
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
	response, err := c.do(ctx, as, call{
		what: what, kind: ManifestRequest, method: http.MethodGet, repository: repository, path: "manifests/" + reference, accept: manifestTypes(),
	})
	if err != nil {
		return "", nil, err
	}
	defer closeBody(response)
	body, err = readBody(response, maxManifest, what)
	if err != nil {
		return "", nil, err
	}
	digest = digestOf(body)
	if byDigest && digest != reference {
		return "", nil, untrue(what, "%s sent a manifest with the digest %s", repository.Host, digest)
	}
	if said := response.Header.Get("Docker-Content-Digest"); said != "" && said != digest {
		return "", nil, untrue(what, "%s says that its digest is %.80q, and it is %s", repository.Host, said, digest)
	}
	return digest, body, nil
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// readBody reads a response of at most most bytes.
func readBody(response *http.Response, most int64, what string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, NoAnswer(what, "the registry, which stopped in the middle", withoutURL(err))
	}
	if int64(len(body)) > most {
		return nil, untrue(what, "the answer is longer than %d bytes", most)
	}
	return body, nil
}

// Image finds the platforms of a digest, which never change.
func (c *Client) Image(ctx context.Context, as keychain.Credential, repository tagspec.Repository, digest string) (Image, error) {
	_, body, err := c.manifest(ctx, as, repository, digest)
	if err != nil {
		return Image{}, err
	}
	what := "manifest of " + repository.String() + "@" + digest
	index, err := v1.ParseIndexManifest(bytes.NewReader(body))
	if err == nil && (index.MediaType.IsIndex() || len(index.Manifests) > 0) {
		return indexed(what, digest, index)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(body))
	if err != nil || !isDigest(manifest.Config.Digest.String()) {
		return Image{}, untrue(what, "%s sent what is neither an image nor an index of images", repository.Host)
	}
	return c.single(ctx, as, repository, Image{Digest: digest}, manifest.Config.Digest.String())
}

func indexed(what, digest string, index *v1.IndexManifest) (Image, error) {
	if len(index.Manifests) > maxPlatforms {
		return Image{}, untrue(what, "an index of more than %d images", maxPlatforms)
	}
	found := Image{Digest: digest, Index: true}
	for _, m := range index.Manifests {
		if !isDigest(m.Digest.String()) {
			return Image{}, untrue(what, "an index with the digest %.80q", m.Digest.String())
		}
		p := v1.Platform{OS: "linux", Architecture: "amd64"} // the default for an entry without a platform
		if m.Platform != nil {
			p = *m.Platform
		}
		if p.OS == "unknown" { // an attestation
			continue
		}
		found.Platforms = append(found.Platforms, Platform{p, m.Digest.String()})
	}
	return found, nil
}

// single reads the configuration of an image outside an index.
func (c *Client) single(ctx context.Context, as keychain.Credential, repository tagspec.Repository, image Image, config string) (Image, error) {
	what := "configuration of " + repository.String() + "@" + image.Digest
	response, err := c.do(ctx, as, call{what: what, kind: BlobRequest, method: http.MethodGet, repository: repository, path: "blobs/" + config, accept: []string{"*/*"}})
	if err != nil {
		return Image{}, err
	}
	defer closeBody(response)
	body, err := readBody(response, maxConfig, what)
	if err != nil {
		return Image{}, err
	}
	if digestOf(body) != config {
		return Image{}, untrue(what, "%s sent a configuration with the digest %s", repository.Host, digestOf(body))
	}
	file, err := v1.ParseConfigFile(bytes.NewReader(body))
	if err != nil || file.OS == "" || file.Architecture == "" {
		return Image{}, untrue(what, "%s sent a configuration without a platform", repository.Host)
	}
	image.Platforms = []Platform{{v1.Platform{OS: file.OS, Architecture: file.Architecture, Variant: file.Variant, OSVersion: file.OSVersion}, image.Digest}}
	return image, nil
}

// ParsePlatform reads "linux/arm64" or "linux/arm/v7".
func ParsePlatform(text string) (v1.Platform, error) {
	p, err := v1.ParsePlatform(text)
	if err != nil || p.OS == "" || p.Architecture == "" {
		return v1.Platform{}, fmt.Errorf("platform %q: want os/architecture, such as linux/amd64 or linux/arm/v7", text)
	}
	return *p, nil
}
