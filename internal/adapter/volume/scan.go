package volume

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

// Keeper takes file contents and gives their digests back. Unpin lets go of
// what nobody came to know of.
type Keeper interface {
	KeepFrom(r io.Reader) (filemap.Digest, error)
	Unpin(entries []filemap.Entry)
}

// HashOnly is the keeper for directories that are watched where they are: it
// forgets what it reads.
type HashOnly struct{}

// KeepFrom returns the digest of what the reader yields.
func (HashOnly) KeepFrom(r io.Reader) (filemap.Digest, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return filemap.Digest(h.Sum(nil)), err
}

// Unpin has nothing to let go of.
func (HashOnly) Unpin([]filemap.Entry) {}

// Directory reads a directory that somebody else fills: a mounted ConfigMap or
// Secret, or plain files.
type Directory struct {
	path   string
	keeper Keeper
	last   string
	seen   filemap.Object
}

// NewDirectory reads the directory at path and gives its contents to keeper.
func NewDirectory(dir string, keeper Keeper) *Directory {
	return &Directory{path: dir, keeper: keeper}
}

// Scan reads the directory as one object whose keys are relative paths. It
// says whether anything differs from the last scan. Contents are only read when
// a size, a time or an inode differs, so that a scan of quiet files is cheap.
func (d *Directory) Scan() (filemap.Object, bool, error) {
	root, err := d.open()
	if err != nil {
		return d.seen, false, fmt.Errorf("read the directory %s: %w", d.path, err)
	}
	defer func() { _ = root.Close() }()
	files, signature, err := list(root)
	if err != nil {
		return d.seen, false, fmt.Errorf("read the directory %s: %w", d.path, err)
	}
	if signature == d.last {
		return d.seen, false, nil
	}
	object := filemap.Object{Ref: filemap.Ref{Kind: filemap.Directory, Name: d.path}}
	for _, name := range files {
		entry, err := d.read(root, name)
		if err != nil {
			d.keeper.Unpin(object.Entries)
			return d.seen, false, fmt.Errorf("read the directory %s: %w", d.path, err)
		}
		object.Entries = append(object.Entries, entry)
	}
	d.last, d.seen = signature, object
	return object, true, nil
}

// open resolves ..data once, so that all files come from the same generation
// even when the kubelet swaps the link meanwhile.
func (d *Directory) open() (*os.Root, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	data, err := root.OpenRoot(dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil
	}
	_ = root.Close()
	return data, err
}

func (d *Directory) read(root *os.Root, name string) (filemap.Entry, error) {
	f, err := root.Open(name)
	if err != nil {
		return filemap.Entry{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return filemap.Entry{}, err
	}
	digest, err := d.keeper.KeepFrom(f)
	return filemap.Entry{Key: name, Digest: digest, Size: info.Size()}, err
}

// list names all files and sums up what tells whether they changed.
func list(root *os.Root) ([]string, string, error) {
	var files []string
	var signature strings.Builder
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(path.Base(p), "..") {
			return skip(d)
		}
		if d.IsDir() {
			return nil
		}
		info, err := root.Stat(p) // follows links, but not out of the directory
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		files = append(files, p)
		fmt.Fprintf(&signature, "%s\x00%d %d %s\n", p, info.Size(), info.ModTime().UnixNano(), identity(info))
		return nil
	})
	return files, signature.String(), err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// identity is the inode and the time of its last change, which nobody can set:
// a copy that keeps size and modification time is noticed all the same.
func identity(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
	}
	return ""
}
