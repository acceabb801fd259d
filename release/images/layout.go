package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// refAnnotation is the annotation by which tools find an image in a layout:
// oci:dist/images:lockstep.
const refAnnotation = "org.opencontainers.image.ref.name"

// layoutFile marks a directory as an OCI layout.
const layoutFile = "oci-layout"

// CheckLayout refuses a directory that contains anything other than a layout: writing one
// replaces the directory.
func CheckLayout(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("OUT=%s: want a directory, which is replaced: %w", dir, err)
	}
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == layoutFile }) {
		return fmt.Errorf("OUT=%s: the directory has other files in it, and writing the images would remove them: name a new or an empty directory", dir)
	}
	return nil
}

// WriteLayout writes images into a new OCI layout, and replaces the old one when the new one
// is complete.
func WriteLayout(dir string, images []Built) error {
	if err := CheckLayout(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := writeLayout(fresh, images); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	// Other users can't read a temporary directory, but a layout has to be readable.
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

func writeLayout(dir string, images []Built) error {
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, image := range images {
		if err := to.AppendIndex(image.Index, layout.WithAnnotations(map[string]string{refAnnotation: image.Name})); err != nil {
			return err
		}
	}
	for _, image := range images {
		for _, attached := range image.SBOMs {
			if err := to.AppendImage(attached); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadLayout finds the images of the table in a layout, with their attachments.
func ReadLayout(dir string) ([]Built, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read the images in %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the images in %s: %w", dir, err)
	}
	var all []Built
	for _, image := range Table() {
		built, err := find(image, index, manifest)
		if err != nil {
			return nil, fmt.Errorf("read image %s in %s: %w", image.Name, dir, err)
		}
		all = append(all, built)
	}
	return all, nil
}

func find(image Image, index v1.ImageIndex, manifest *v1.IndexManifest) (Built, error) {
	for _, d := range manifest.Manifests {
		if d.Annotations[refAnnotation] != image.Name {
			continue
		}
		found, err := index.ImageIndex(d.Digest)
		if err != nil {
			return Built{}, err
		}
		attached, err := attachedTo(found, index, manifest)
		return Built{Image: image, Index: found, SBOMs: attached}, err
	}
	return Built{}, errors.New("there is none")
}

// attachedTo finds the manifests of a layout whose subject is an index or one of its
// images.
func attachedTo(subject, all v1.ImageIndex, manifest *v1.IndexManifest) ([]v1.Image, error) {
	digest, err := subject.Digest()
	if err != nil {
		return nil, err
	}
	inside, err := subject.IndexManifest()
	if err != nil {
		return nil, err
	}
	subjects := map[v1.Hash]bool{digest: true}
	for _, d := range inside.Manifests {
		subjects[d.Digest] = true
	}
	var attached []v1.Image
	for _, d := range manifest.Manifests {
		if !d.MediaType.IsImage() {
			continue
		}
		one, err := all.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		of, err := one.Manifest()
		if err != nil {
			return nil, err
		}
		if of.Subject != nil && subjects[of.Subject.Digest] {
			attached = append(attached, one)
		}
	}
	return attached, nil
}
