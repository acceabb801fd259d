package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

const (
	// dataLink is the link whose target decides which files readers see.
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
		return "", fmt.Errorf("%s points to %q, which this agent didn't write", dataLink, target)
	}
	return id, nil
}

func (l *links) dir(id string) string { return generationPrefix + id }

func (l *links) staged(string) error { return nil }

func (l *links) forget(string) error { return nil }

func (l *links) generations() ([]string, error) {
	entries, err := fs.ReadDir(plainfile.Dirs(l.base), ".")
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

// swap moves the one link. New names are linked before it and old names are unlinked after
// it: until the swap a new name leads nowhere, as in the old set, and after it an old name
// leads nowhere, as in the new set. So every moment shows exactly one set.
//
// Another program's file that may be overwritten is replaced after the swap, in one step
// too: it is only gone when its replacement is in place.
func (l *links) swap(id string) error {
	names, err := l.names(id)
	if err != nil {
		return err
	}
	missing, foreign, err := l.notOurs(names)
	if err != nil {
		return err
	}
	if err := l.linkAll(missing); err != nil {
		return err
	}
	if err := l.point(id); err != nil {
		return errors.Join(err, l.unlink(missing))
	}
	if err := l.replaceAll(foreign); err != nil {
		return err
	}
	return l.unlinkOthers(names)
}

// point is the swap itself.
func (l *links) point(id string) error {
	if err := l.base.RemoveAll(dataLinkNew); err != nil {
		return err
	}
	if err := l.base.Symlink(l.dir(id), dataLinkNew); err != nil {
		return err
	}
	return l.base.Rename(dataLinkNew, dataLink)
}

// names are the first elements of the generation's paths, sorted.
func (l *links) names(id string) ([]string, error) {
	entries, err := fs.ReadDir(plainfile.Dirs(l.base), l.dir(id))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// ours reports whether name is a link that this agent makes. The target shows that, so there
// is no list of names that could be lost.
func (l *links) ours(name string) bool {
	target, err := l.base.Readlink(name)
	return err == nil && target == dataLink+"/"+name
}

// notOurs finds the names that are not links of this agent yet: missing names, and other
// programs' files that may be overwritten. Any other file is an error before the first link
// is made.
func (l *links) notOurs(names []string) (missing, foreign []string, err error) {
	for _, name := range names {
		if l.ours(name) {
			continue
		}
		info, err := l.base.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, nil, err
		case !l.overwrite || info.IsDir():
			return nil, nil, fmt.Errorf("%s exists, and this agent didn't write it: remove it, use another root, or set overwrite", name)
		default:
			foreign = append(foreign, name)
		}
	}
	return missing, foreign, nil
}

// linkAll makes new names lead through ..data. A failure removes them again, so a set that
// isn't published leaves no links behind.
func (l *links) linkAll(names []string) error {
	for i, name := range names {
		if err := l.base.Symlink(dataLink+"/"+name, name); err != nil {
			return errors.Join(err, l.unlink(names[:i]))
		}
	}
	return nil
}

func (l *links) replaceAll(names []string) error {
	for _, name := range names {
		if err := l.replace(name); err != nil {
			return err
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

// tidy completes the swap of an agent that was killed: it removes the agent's links that
// lead nowhere, and replaces other programs' files that the swap was going to replace.
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
	if missing, foreign, err := l.notOurs(names); err == nil { // otherwise the next set reports the obstacle
		if err := errors.Join(l.linkAll(missing), l.replaceAll(foreign)); err != nil {
			return err
		}
	}
	return l.unlinkOthers(names)
}

// replace replaces a file with the agent's link in one step.
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

// unlinkOthers removes the agent's links whose names are not in a sorted list.
func (l *links) unlinkOthers(names []string) error {
	entries, err := fs.ReadDir(plainfile.Dirs(l.base), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, wanted := slices.BinarySearch(names, e.Name()); wanted || e.Type()&fs.ModeSymlink == 0 || !l.ours(e.Name()) {
			continue
		}
		if err := l.base.Remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}
