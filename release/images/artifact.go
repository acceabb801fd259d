package images

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of an attached SBOM, as OCI 1.1 requires: the artifact has a type, a subject,
// and an empty configuration.
const (
	spdxType    types.MediaType = "application/spdx+json"
	emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"
)

// artifact is a manifest with one document and a subject. The library can make images with a
// subject, but not with an artifact type.
type artifact struct {
	manifest []byte
	document []byte
}

// newSBOM attaches a document to an image or index.
func newSBOM(document []byte, subject mutate.Appendable, created string) (v1.Image, error) {
	to, err := partial.Descriptor(subject)
	if err != nil {
		return nil, fmt.Errorf("attach an SBOM: %w", err)
	}
	config, err := describe(emptyConfig, []byte("{}"))
	if err != nil {
		return nil, err
	}
	layer, err := describe(spdxType, document)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(spdxType),
		Config: config, Layers: []v1.Descriptor{layer},
		Subject:     &v1.Descriptor{MediaType: to.MediaType, Size: to.Size, Digest: to.Digest},
		Annotations: map[string]string{"org.opencontainers.image.created": created},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest: manifest, document: document})
}

func describe(kind types.MediaType, content []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	return v1.Descriptor{MediaType: kind, Size: size, Digest: digest}, err
}

// MediaType is the media type of all OCI manifests.
func (artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest is the manifest as it is stored.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// RawConfigFile is the empty configuration.
func (artifact) RawConfigFile() ([]byte, error) { return []byte("{}"), nil }

// LayerByDigest is the document, the only layer, or the configuration.
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for kind, content := range map[types.MediaType][]byte{spdxType: a.document, emptyConfig: []byte("{}")} {
		d, err := describe(kind, content)
		if err != nil {
			return nil, err
		}
		if d.Digest == digest {
			return blob{Descriptor: d, content: content}, nil
		}
	}
	return nil, fmt.Errorf("an SBOM has no part %s", digest)
}

// blob is stored unchanged, although the library calls that compressed.
type blob struct {
	v1.Descriptor
	content []byte
}

// Digest of the content.
func (b blob) Digest() (v1.Hash, error) { return b.Descriptor.Digest, nil }

// Compressed is the content.
func (b blob) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b.content)), nil
}

// Size of the content.
func (b blob) Size() (int64, error) { return b.Descriptor.Size, nil }

// MediaType of the content.
func (b blob) MediaType() (types.MediaType, error) { return b.Descriptor.MediaType, nil }
