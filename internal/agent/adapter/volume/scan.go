package volume

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Keeper stores file contents and returns their digests. Unpin releases contents that no
// inventory lists.
type Keeper interface {
	KeepFrom(r io.Reader) (filemap.Digest, error)
	Unpin(entries []filemap.Entry)
}

// HashOnly is the keeper for directories that are only watched: it doesn't store contents.
type HashOnly struct{}

// KeepFrom returns the digest of the reader's content.
func (HashOnly) KeepFrom(r io.Reader) (filemap.Digest, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return filemap.Digest(h.Sum(nil)), err
}

// Unpin has nothing to release.
func (HashOnly) Unpin([]filemap.Entry) {}

// Directory reads a directory that another program fills: a mounted ConfigMap or
// Secret, or plain files.
type Directory struct {
	path   string
	keeper Keeper
	limit  int64
	admit  func(ref filemap.Ref, weight int64) bool
	// last is the signature of the last scan; empty means to read again.
	last string
	seen filemap.Object
	told bool // the caller received seen
}

// NewDirectory reads the directory at path and passes its contents to keeper.
func NewDirectory(dir string, keeper Keeper) *Directory {
	return &Directory{path: dir, keeper: keeper, admit: func(filemap.Ref, int64) bool { return true }}
}

// Limit omits the contents of the directory while they weigh more than limit, or while admit
// says that they don't fit; 0 means no limit.
func (d *Directory) Limit(limit int64, admit func(ref filemap.Ref, weight int64) bool) {
	d.limit, d.admit = limit, admit
}

// Scan reads the directory as one object whose keys are relative paths. It reports whether
// anything changed since the last scan, or whether that scan failed. It reads contents only
// when a size, a time or an inode differs, so scanning unchanged files is cheap.
func (d *Directory) Scan() (filemap.Object, bool, error) {
	changed, err := d.scan(time.Now())
	d.told = err == nil
	if err != nil {
		return d.seen, false, fmt.Errorf("read the directory %s: %w", d.path, err)
	}
	return d.seen, changed, nil
}

func (d *Directory) scan(began time.Time) (bool, error) {
	root, err := d.open()
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	found, err := list(root, d.limit)
	if err != nil {
		return false, err
	}
	ref := filemap.Ref{Kind: filemap.Directory, Name: d.path}
	if weight := max(found.weight, filemap.Weight(0)); found.cut || !d.admit(ref, weight) {
		changed := !d.told || d.seen.Omitted != weight
		d.last, d.seen = "", filemap.Object{Ref: ref, Omitted: weight}
		return changed, nil
	}
	if d.told && d.last != "" && found.signature() == d.last {
		return false, nil
	}
	object := filemap.Object{Ref: ref, Entries: found.others}
	for _, name := range found.files {
		entry, err := d.read(root, name)
		if err != nil {
			d.keeper.Unpin(object.Entries)
			return false, err
		}
		object.Entries = append(object.Entries, entry)
	}
	d.last = ""
	if found.newest.Before(began.Add(-tick)) {
		d.last = found.signature()
	}
	if d.told && slices.Equal(object.Entries, d.seen.Entries) {
		d.keeper.Unpin(object.Entries)
		return false, nil
	}
	d.seen = object
	return true, nil
}

// tick is longer than the clock resolution of any file system. A file that changed less than
// this before it was read can change again and look the same.
const tick = time.Second

// open resolves ..data once, so all files come from the same generation even when the
// kubelet swaps the link in the meantime.
func (d *Directory) open() (*os.Root, error) {
	root, err := plainfile.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	data, err := plainfile.OpenRootIn(root, dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil
	}
	_ = root.Close()
	return data, err
}

func (d *Directory) read(root *os.Root, name string) (filemap.Entry, error) {
	f, err := plainfile.OpenIn(root, name)
	if err != nil {
		return filemap.Entry{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return filemap.Entry{}, err
	}
	digest, err := d.keeper.KeepFrom(io.LimitReader(f, info.Size())) // a file that grows without end has an end here
	return filemap.Entry{Key: name, Digest: digest, Size: info.Size()}, err
}

// listing describes a directory without its contents.
type listing struct {
	files  []string
	others []filemap.Entry // names that aren't files
	weight int64           // as the size of a set counts it
	cut    bool            // there are more files than a set may have
	marks  strings.Builder
	newest time.Time // when the last of the files changed
}

// signature summarises the attributes that show whether the files changed.
func (l *listing) signature() string { return "files\n" + l.marks.String() }

func (l *listing) add(name string, info fs.FileInfo) {
	if info.Mode().IsRegular() {
		l.files = append(l.files, name)
		l.weight += filemap.Weight(info.Size())
	} else {
		l.others = append(l.others, filemap.Entry{Key: name, Unusable: plainfile.Kind(info.Mode())})
		l.weight += filemap.Weight(0)
	}
	fmt.Fprintf(&l.marks, "%s\x00%d %d", name, info.Size(), info.ModTime().UnixNano())
	// Programs can't set the inode and its change time, so they reveal even a copy that keeps
	// size and modification time.
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		changed := time.Unix(stat.Ctim.Unix())
		fmt.Fprintf(&l.marks, " %d %d", stat.Ino, changed.UnixNano())
		if changed.After(l.newest) {
			l.newest = changed
		}
	}
	l.marks.WriteByte('\n')
}

// list names all files, and stops when they weigh more than limit.
func list(root *os.Root, limit int64) (*listing, error) {
	found := &listing{}
	err := fs.WalkDir(plainfile.Dirs(root), ".", func(p string, d fs.DirEntry, err error) error {
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
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a dangling link, such as an editor's lock
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			found.add(p, info)
		}
		if found.cut = limit > 0 && found.weight > limit; found.cut {
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}
