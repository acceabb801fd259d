package volume

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// objectDir contains the contents that generations link to.
const objectDir = "objects"

func newObjects(state *os.Root, opts Options) objects {
	return objects{state: state, opts: opts.kept(), known: map[filemap.Digest]bool{}, pinned: map[filemap.Digest]int{}}
}

// Keep stores one value on the disk. It stays at least until Unpin is called
// for its digest.
func (v *Volume) Keep(value []byte) (filemap.Digest, error) {
	o := &v.objects
	o.mu.Lock()
	defer o.mu.Unlock()
	digest := filemap.Digest(sha256.Sum256(value))
	if !o.has(digest) {
		if _, err := o.write(bytes.NewReader(value)); err != nil {
			return digest, fmt.Errorf("keep a value of %d bytes: %w", len(value), err)
		}
	}
	o.pinned[digest]++
	return digest, nil
}

// KeepFrom stores the reader's content without holding it in memory.
func (v *Volume) KeepFrom(r io.Reader) (filemap.Digest, error) {
	o := &v.objects
	o.mu.Lock()
	defer o.mu.Unlock()
	digest, err := o.write(r)
	if err != nil {
		return digest, fmt.Errorf("keep a file's content: %w", err)
	}
	o.pinned[digest]++
	return digest, nil
}

// Unpin records that the caller now lists the values itself, in the live set it passes to
// Prune.
func (v *Volume) Unpin(entries []filemap.Entry) {
	v.objects.mu.Lock()
	defer v.objects.mu.Unlock()
	for _, e := range entries {
		if v.objects.pinned[e.Digest]--; v.objects.pinned[e.Digest] <= 0 {
			delete(v.objects.pinned, e.Digest)
		}
	}
}

// name includes mode and owner next to the digest: all links of an object share them, so a
// different mode or owner needs a different object.
func (o *objects) name(d filemap.Digest) string {
	return objectDir + "/" + d.String() + o.suffix()
}

func (o *objects) suffix() string {
	return "-" + strconv.FormatUint(uint64(o.opts.FileMode), 8) + "-" + strconv.Itoa(o.opts.UID) + "-" + strconv.Itoa(o.opts.GID)
}

// has reports whether the object is on the disk and complete. The first time in a process it
// reads the file, because an earlier process may have been killed.
func (o *objects) has(d filemap.Digest) bool {
	if o.known[d] {
		return true
	}
	f, err := plainfile.OpenIn(o.state, o.name(d))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil || filemap.Digest(h.Sum(nil)) != d {
		return false
	}
	o.known[d] = true
	return true
}

func (o *objects) write(r io.Reader) (filemap.Digest, error) {
	if err := o.state.Mkdir(objectDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return filemap.Digest{}, err
	}
	o.serial++
	temporary := objectDir + "/new-" + strconv.Itoa(o.serial)
	digest, err := o.fill(temporary, r)
	if err != nil {
		return digest, errors.Join(err, o.state.RemoveAll(temporary))
	}
	if o.has(digest) {
		// Renaming over the existing file would make a concurrent link to it fail.
		return digest, o.state.Remove(temporary)
	}
	if err := o.state.Rename(temporary, o.name(digest)); err != nil {
		return digest, err
	}
	o.known[digest] = true
	return digest, nil
}

// fill writes a new file with its final mode and owner. An existing file of that name is a
// killed agent's leftover.
func (o *objects) fill(name string, r io.Reader) (filemap.Digest, error) {
	if err := o.state.RemoveAll(name); err != nil {
		return filemap.Digest{}, err
	}
	f, err := o.state.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return filemap.Digest{}, err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), r)
	err = errors.Join(err, finishFile(f, o.opts), f.Close())
	return filemap.Digest(h.Sum(nil)), err
}

// finishFile sets the file's mode before its owner: a process that may only change owners
// can't change the mode of another user's file.
func finishFile(f *os.File, opts Options) error {
	if err := f.Chmod(opts.FileMode); err != nil {
		return err
	}
	if opts.UID >= 0 || opts.GID >= 0 {
		if err := f.Chown(opts.UID, opts.GID); err != nil {
			return fmt.Errorf("%w: changing the owner requires the CHOWN capability", err)
		}
	}
	if opts.Durable {
		return f.Sync()
	}
	return nil
}

// sweep removes every object that no set needs. It calls live after reading the pins, so a
// value that was unpinned before is in the live list.
func (o *objects) sweep(live func() map[filemap.Digest]bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries, err := fs.ReadDir(plainfile.Dirs(o.state), objectDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", objectDir, err)
	}
	needed := map[string]bool{}
	for d := range o.pinned {
		needed[d.String()] = true
	}
	for d := range live() {
		needed[d.String()] = true
	}
	for _, e := range entries {
		digest, _, _ := strings.Cut(e.Name(), "-")
		if needed[digest] && strings.HasSuffix(e.Name(), o.suffix()) {
			continue
		}
		if err := o.state.Remove(objectDir + "/" + e.Name()); err != nil {
			return fmt.Errorf("remove an unused object: %w", err)
		}
		o.forget(digest)
	}
	return nil
}

func (o *objects) forget(digest string) {
	if raw, err := hex.DecodeString(digest); err == nil && len(raw) == sha256.Size {
		delete(o.known, filemap.Digest(raw))
	}
}
