package bundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string // inside
	path string // on the disk
	mode int64
}

// writeArchive packs files in the given order. They belong to root and have the time of the
// commit, so the same commit results in the same archive.
func writeArchive(to string, entries []entry, created time.Time) error {
	return create(to, func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		archive := tar.NewWriter(packed)
		for _, e := range entries {
			if err := e.write(archive, created); err != nil {
				return fmt.Errorf("pack %s: %w", e.name, err)
			}
		}
		return errors.Join(archive.Close(), packed.Close())
	})
}

// writeDir packs a directory without compression, for content that is compressed already.
func writeDir(to, dir string, created time.Time) error {
	return create(to, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		// WalkDir sorts names.
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return entry{name: filepath.ToSlash(name), path: path, mode: 0o644}.write(archive, created)
		})
		return errors.Join(err, archive.Close())
	})
}

func (e entry) write(archive *tar.Writer, created time.Time) error {
	content, err := os.ReadFile(e.path)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(content)), ModTime: created, Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}

// rewriteTimes repacks an archive with the time of the commit: Helm uses the file times of
// this machine.
func rewriteTimes(from, to string, created time.Time) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	unpacked, err := gzip.NewReader(source)
	if err != nil {
		return err
	}
	return create(to, func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		archive := tar.NewWriter(packed)
		if err := copyEntries(archive, tar.NewReader(unpacked), created); err != nil {
			return err
		}
		return errors.Join(archive.Close(), packed.Close())
	})
}

func copyEntries(to *tar.Writer, from *tar.Reader, created time.Time) error {
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		plain := &tar.Header{Name: header.Name, Mode: 0o644, Size: header.Size, ModTime: created, Typeflag: header.Typeflag}
		if err := to.WriteHeader(plain); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, header.Size); err != nil {
			return err
		}
	}
}

func create(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
