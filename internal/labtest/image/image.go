// Package image builds container images from a few files at the time they are needed,
// without a registry, a base image or a build tool.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image describes an image to build.
type Image struct {
	// Name with a tag, such as "lab.local/lockstep:1".
	Name string
	// Files of this machine by their path in the image. They may be executed.
	Files map[string]string
	// Entrypoint is the command and its first arguments.
	Entrypoint []string
	// User is the ID of the user that runs it; empty means root.
	User string
}

// Write builds the image and writes it to a file that container runtimes import.
func (i Image) Write(file string) error {
	tag, err := name.NewTag(i.Name)
	if err != nil {
		return fmt.Errorf("make image %s: %w", i.Name, err)
	}
	image, err := i.build()
	if err != nil {
		return fmt.Errorf("make image %s: %w", i.Name, err)
	}
	if err := tarball.WriteToFile(file, tag, image); err != nil {
		return fmt.Errorf("write image %s: %w", i.Name, err)
	}
	return nil
}

// Push builds the image and pushes it to a registry over plain HTTP. host is the registry's
// name in the image's name, address where it is reached.
func (i Image) Push(ctx context.Context, host, address string) error {
	path, ok := strings.CutPrefix(i.Name, host+"/")
	if !ok {
		return fmt.Errorf("push image %s: its name does not begin with %s/", i.Name, host)
	}
	tag, err := name.NewTag(address+"/"+path, name.Insecure)
	if err != nil {
		return fmt.Errorf("push image %s: %w", i.Name, err)
	}
	image, err := i.build()
	if err != nil {
		return fmt.Errorf("make image %s: %w", i.Name, err)
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("push image %s: %w", i.Name, err)
	}
	return nil
}

// PushTo builds the image, pushes it to the registry in its name with the options'
// credentials and TLS, and returns its digest.
func (i Image) PushTo(ctx context.Context, options ...remote.Option) (string, error) {
	tag, err := name.NewTag(i.Name)
	if err != nil {
		return "", fmt.Errorf("push image %s: %w", i.Name, err)
	}
	image, err := i.build()
	if err != nil {
		return "", fmt.Errorf("make image %s: %w", i.Name, err)
	}
	if err := remote.Write(tag, image, append(options, remote.WithContext(ctx))...); err != nil {
		return "", fmt.Errorf("push image %s: %w", i.Name, err)
	}
	digest, err := image.Digest()
	return digest.String(), err
}

func (i Image) build() (v1.Image, error) {
	files, err := i.archive()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithCompressedCaching) // otherwise each use compresses it again
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH,
		RootFS: v1.RootFS{Type: "layers", DiffIDs: diffIDs(layer)},
		Config: v1.Config{Entrypoint: i.Entrypoint, User: i.User, Env: []string{"PATH=/"}},
	})
}

func diffIDs(layer v1.Layer) []v1.Hash {
	id, err := layer.DiffID()
	if err != nil {
		return nil
	}
	return []v1.Hash{id}
}

// archive packs the files, sorted, without times, so the same files produce the same image.
func (i Image) archive() ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	made := map[string]bool{}
	for _, target := range slices.Sorted(maps.Keys(i.Files)) {
		content, err := os.ReadFile(i.Files[target])
		if err != nil {
			return nil, err
		}
		if err := dirs(w, path.Dir(target), made); err != nil {
			return nil, err
		}
		header := &tar.Header{Name: strings.TrimPrefix(target, "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), w.Close()
}

func dirs(w *tar.Writer, dir string, made map[string]bool) error {
	if dir == "/" || dir == "." || made[dir] {
		return nil
	}
	if err := dirs(w, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755, Typeflag: tar.TypeDir})
}
