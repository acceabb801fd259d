package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The user that runs every image, unless a manifest names another one.
const (
	userID   = 65532
	userName = "lockstep"
)

// file is a file, directory or link of a layer, by its absolute path.
type file struct {
	path    string
	mode    int64
	owner   int
	content []byte
	link    string // the target of a link
	dir     bool
}

// newLayer packs files. They are sorted and have no time, so the same files result in the
// same layer in every release. Directories that are not listed belong to root.
func newLayer(files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range withDirs(files) {
		if err := f.write(w); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching,
	)
}

func withDirs(files []file) []file {
	known := map[string]bool{"/": true}
	for _, f := range files {
		known[f.path] = true
	}
	all := slices.Clone(files)
	for _, f := range files {
		for dir := path.Dir(f.path); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, file{path: dir, mode: 0o755, dir: true})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return all
}

func (f file) write(w *tar.Writer) error {
	header := &tar.Header{
		Name: strings.TrimPrefix(f.path, "/"), Mode: f.mode, Uid: f.owner, Gid: f.owner,
		ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Size: int64(len(f.content)),
	}
	switch {
	case f.dir:
		header.Name, header.Typeflag = header.Name+"/", tar.TypeDir
	case f.link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.link, 0o777
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.content)
	return err
}
