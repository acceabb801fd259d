package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

const (
	// dataLink is the one name whose target decides what readers see.
	dataLink         = "..data"
	dataLinkNew      = "..data_tmp"
	generationPrefix = "..gen-"
)

// links is the kubelet's layout.
type links struct {
	base      *os.Root
	overwrite bool
}

func (l *links) current() (string, error) {
	target, err := l.base.Readlink(dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", dataLink, err)
	}
	id, ours := strings.CutPrefix(target, generationPrefix)
	if !ours {
		return "", fmt.Errorf("%s points to %q, which this agent did not write", dataLink, target)
	}
	return id, nil
}

func (l *links) dir(id string) string { return generationPrefix + id }

func (l *links) staged(string, filemap.Tree) error { return nil }

func (l *links) forget(string) error { return nil }

func (l *links) generations() ([]string, error) {
	entries, err := fs.ReadDir(l.base.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the root: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), generationPrefix); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// swap moves the one link. New names are linked before it and old names are
// unlinked after it: until the swap a new name leads nowhere, as in the old
// set, and after it an old name leads nowhere, as in the new set. So every
// moment shows exactly one set.
func (l *links) swap(id string) error {
	names, err := l.names(id)
	if err != nil {
		return err
	}
	if err := l.linkAll(names); err != nil {
		return err
	}
	if err := l.base.RemoveAll(dataLinkNew); err != nil {
		return err
	}
	if err := l.base.Symlink(l.dir(id), dataLinkNew); err != nil {
		return err
	}
	if err := l.base.Rename(dataLinkNew, dataLink); err != nil {
		return err
	}
	return l.unlinkOthers(names)
}

// names are the first elements of the generation's paths.
func (l *links) names(id string) ([]string, error) {
	entries, err := fs.ReadDir(l.base.FS(), l.dir(id))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// ours says whether name is a link that this agent makes. No list of names has
// to be kept for that, so that none can be lost.
func (l *links) ours(name string) bool {
	target, err := l.base.Readlink(name)
	return err == nil && target == dataLink+"/"+name
}

// linkAll makes all names lead through ..data. Foreign names are looked for
// before the first link is made, and a failure takes the new ones away again: a
// set that is not published leaves no trace.
func (l *links) linkAll(names []string) error {
	var missing, foreign []string
	for _, name := range names {
		if l.ours(name) {
			continue
		}
		info, err := l.base.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return err
		case !l.overwrite || info.IsDir():
			return fmt.Errorf("%s is there but was not written by this agent: remove it, use another --root, or set --overwrite", name)
		default:
			foreign = append(foreign, name)
		}
	}
	for i, name := range missing {
		if err := l.base.Symlink(dataLink+"/"+name, name); err != nil {
			return errors.Join(err, l.unlink(missing[:i]))
		}
	}
	for _, name := range foreign {
		if err := l.replace(name); err != nil {
			return errors.Join(err, l.unlink(missing))
		}
	}
	return nil
}

func (l *links) unlink(names []string) error {
	var failures []error
	for _, name := range names {
		failures = append(failures, l.base.Remove(name))
	}
	return errors.Join(failures...)
}

// tidy removes links of ours that lead nowhere: an agent was killed between
// making them and the swap, or between the swap and removing them.
func (l *links) tidy() error {
	id, err := l.current()
	if err != nil {
		return err
	}
	var names []string
	if id != "" {
		if names, err = l.names(id); err != nil {
			return err
		}
	}
	return l.unlinkOthers(names)
}

// replace puts our link in the place of a file in one step.
func (l *links) replace(name string) error {
	temporary := "..link_tmp"
	if err := l.base.RemoveAll(temporary); err != nil {
		return err
	}
	if err := l.base.Symlink(dataLink+"/"+name, temporary); err != nil {
		return err
	}
	return l.base.Rename(temporary, name)
}

func (l *links) unlinkOthers(names []string) error {
	entries, err := fs.ReadDir(l.base.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 || slices.Contains(names, e.Name()) || !l.ours(e.Name()) {
			continue
		}
		if err := l.base.Remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
