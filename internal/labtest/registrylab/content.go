package registrylab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Platforms of the images that PushIndex makes.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64", Variant: "v8"}}
}

// image builds an image without layers. A different label results in a different digest.
func image(label string, p v1.Platform) (v1.Image, error) {
	made, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Variant: p.Variant, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Labels: map[string]string{"content": label}},
	})
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	return made, nil
}

// ChildDigest is the digest of the image for one platform in the index that PushIndex
// makes with a label.
func ChildDigest(label string, p v1.Platform) (string, error) {
	made, err := image(label, p)
	if err != nil {
		return "", err
	}
	digest, err := made.Digest()
	return digest.String(), err
}

// PushImage pushes an image for linux/amd64 and returns its digest.
func (s *Server) PushImage(ctx context.Context, repository, tag, label string) (string, error) {
	made, err := image(label, Platforms()[0])
	if err != nil {
		return "", err
	}
	return s.push(ctx, repository, tag, made)
}

// PushIndex pushes an index of images, one for each platform, and returns its digest.
func (s *Server) PushIndex(ctx context.Context, repository, tag, label string) (string, error) {
	index := v1.ImageIndex(empty.Index)
	for _, p := range Platforms() {
		made, err := image(label, p)
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &p}})
	}
	return s.push(ctx, repository, tag, index)
}

func (s *Server) push(ctx context.Context, repository, tag string, content remote.Taggable) (string, error) {
	at, err := name.NewTag(s.Address + "/" + repository + ":" + tag)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	with := []remote.Option{
		remote.WithContext(ctx), remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: User, Password: Password})),
		remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}),
	}
	switch content := content.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(at, content, with...)
	case v1.Image:
		err = remote.Write(at, content, with...)
	}
	if err != nil {
		return "", fmt.Errorf("push %s: %w", at, err)
	}
	described, err := remote.Head(at, with...)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", at, err)
	}
	return described.Digest.String(), nil
}

// Tag adds many tags to a manifest of a repository. It writes the registry's files: ten
// thousand requests would take most of a minute.
func (s *Server) Tag(repository, digest string, tags ...string) error {
	manifests := filepath.Join(s.storage(), "docker/registry/v2/repositories", repository, "_manifests")
	if _, err := os.Stat(manifests); err != nil {
		return fmt.Errorf("tag %s: %w", repository, err)
	}
	for _, tag := range tags {
		dir := filepath.Join(manifests, "tags", tag, "current")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "link"), []byte(digest), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Untag removes a tag in the same way.
func (s *Server) Untag(repository, tag string) error {
	return os.RemoveAll(filepath.Join(s.storage(), "docker/registry/v2/repositories", repository, "_manifests/tags", tag))
}
