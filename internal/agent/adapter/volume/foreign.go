package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// An application that writes into a published directory writes into a generation: the
// directory it sees is one, or a link to one. The agent moves the application's files from
// each generation to the next: makeRoomFor first checks that this is possible, and carry
// moves them after the swap.
//
// A directory of another user can't get another parent. In the links layout it stays in
// place together with its generation, and a link leads to it.

// foreign lists another program's names in a generation: the topmost ones that it was not
// staged with and that are not directories in the other generation.
func (v *Volume) foreign(from, to string) ([]string, error) {
	files, known := v.fileList(from)
	if !known {
		return nil, nil
	}
	directories := map[string]bool{".": true}
	for name := range files {
		for dir := path.Dir(name); !directories[dir]; dir = path.Dir(dir) {
			directories[dir] = true
		}
	}
	base, other := v.swapper.dir(from), v.swapper.dir(to)
	var found []string
	err := fs.WalkDir(plainfile.Dirs(v.base), base, func(p string, d fs.DirEntry, err error) error {
		name := path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, base), "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed in the meantime
		case err != nil:
			return err
		case directories[name] && d.IsDir(), files[name]:
			return nil
		}
		if info, err := v.base.Lstat(path.Join(other, name)); err == nil && d.IsDir() && info.IsDir() {
			return nil
		}
		found = append(found, name)
		return skip(d)
	})
	return found, err
}

// carries reports whether this layout shows a generation's own directories.
func (v *Volume) carries(from, to string) bool {
	return v.opts.Layout != Files && from != "" && to != "" && from != to
}

// makeRoomFor finds the application's files in one generation, makes sure that they can move
// to another, and creates the directories that they need there.
func (v *Volume) makeRoomFor(from, to string) ([]string, error) {
	if !v.carries(from, to) {
		return nil, nil
	}
	names, err := v.foreign(from, to)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := v.makeRoom(from, to, name); err != nil {
			return nil, fmt.Errorf("another program wrote %s into a published directory, and it would be lost: %w", name, err)
		}
	}
	return names, nil
}

func (v *Volume) makeRoom(from, to, name string) error {
	source, target := path.Join(v.swapper.dir(from), name), path.Join(v.swapper.dir(to), name)
	if info, err := v.base.Lstat(target); err == nil {
		if v.same(source, target) || (v.opts.Overwrite && !info.IsDir()) {
			return nil
		}
		return errors.New("the new set has the same name: remove it, or rename the key")
	}
	if v.opts.Layout == Exchange && v.isDir(source) && !v.mayMove(source) {
		return fmt.Errorf("uid %d isn't allowed to move this directory: remove it, make it writable, or use the layout links", os.Getuid())
	}
	made := map[string]bool{}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if info, err := v.base.Stat(path.Join(v.swapper.dir(to), dir)); err == nil {
			if !info.IsDir() {
				return fmt.Errorf("the new set has a file %s: remove one of them", dir)
			}
			made[dir] = true
		}
	}
	return v.makeParents(v.swapper.dir(to), path.Dir(name), made)
}

// mayMove reports whether a directory may get another parent. The kernel requires write
// permission on it.
func (v *Volume) mayMove(dir string) bool {
	return unix.Access(filepath.Join(v.base.Name(), dir), unix.W_OK) == nil
}

// isDir reports whether a name is a directory itself, not a link to one.
func (v *Volume) isDir(name string) bool {
	info, err := v.base.Lstat(name)
	return err == nil && info.IsDir()
}

// same reports whether two names lead to the same file, because an earlier set left a link.
func (v *Volume) same(a, b string) bool {
	first, err := v.base.Stat(a)
	if err != nil {
		return false
	}
	second, err := v.base.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// carry moves the application's files. Each name moves in one step, right after the swap; a
// file that is open stays open.
func (v *Volume) carry(from, to string, names []string) error {
	for _, name := range slices.Backward(names) {
		source, target := path.Join(v.swapper.dir(from), name), path.Join(v.swapper.dir(to), name)
		if _, err := v.base.Lstat(target); err == nil {
			continue // the set's own file replaces it, or it was moved already
		}
		err := v.base.Rename(source, target)
		if errors.Is(err, fs.ErrPermission) && v.opts.Layout == Links && v.isDir(source) {
			err = v.lead(target, source)
		}
		if err != nil {
			return fmt.Errorf("keep %s, which another program wrote: %w", name, err)
		}
	}
	return nil
}

// lead makes a link that stays valid when it moves, because its name has the same depth in
// each generation.
func (v *Volume) lead(name, to string) error {
	target, err := filepath.Rel(path.Dir(name), to)
	if err != nil {
		return err
	}
	return v.base.Symlink(target, name)
}

// holds reports whether a generation still contains a directory that could not be moved.
func (v *Volume) holds(id string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return v.isDir(path.Join(v.swapper.dir(id), name)) })
}
