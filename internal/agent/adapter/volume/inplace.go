package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// inPlace keeps real files in real directories, in a root that may be a mount point. Each
// file changes in one step; the set does not, because no system call changes several names
// at once. New and changed files are placed first and old ones removed afterwards, so a
// reader may see files of both sets but never misses a file that both contain.
//
// The generation that a file comes from stays next to the data. Until a set is complete, an
// intent file names it, so the next agent continues if this one is killed. A set that can't
// be put in place is rolled back.
type inPlace struct {
	base, state *os.Root
	overwrite   bool
	// list are the files of a generation. makeDir creates a directory with the configured mode,
	// and finishDir sets that mode on a directory that the agent owns.
	list      func(id string) (map[string]bool, bool)
	makeDir   func(name string) error
	finishDir func(name string) error
}

// The files that record the layout's progress.
const (
	currentFile = "current"
	intentFile  = "publishing"
	placeFile   = "placing"
)

func (p *inPlace) current() (string, error) { return p.read(currentFile) }

func (p *inPlace) read(name string) (string, error) {
	raw, err := plainfile.ReadIn(p.state, name, plainfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(raw)), err
}

func (p *inPlace) dir(id string) string { return generationPrefix + id }

func (p *inPlace) staged(string) error { return nil }

func (p *inPlace) forget(string) error { return nil }

func (p *inPlace) generations() ([]string, error) { return (&links{base: p.base}).generations() }

// intents are the sets that were started and not completed, the newest last.
func (p *inPlace) intents() ([]string, error) {
	raw, err := p.read(intentFile)
	return strings.Fields(raw), err
}

// resume completes the set that a killed agent started. An obstacle doesn't stop the agent's
// start: Prune retries the roll-back, and the next set may succeed.
func (p *inPlace) resume() error {
	ids, err := p.intents()
	if err != nil || len(ids) == 0 {
		return err
	}
	id := ids[len(ids)-1]
	if _, known := p.list(id); !known && len(ids) == 1 {
		return p.state.Remove(intentFile) // it was never complete
	}
	if err := p.swap(id); err != nil {
		_ = p.goBack() // Prune retries and reports
	}
	return nil
}

// goBack restores the set that was in place before one that could not be completed, so
// readers find the set that counts as published.
func (p *inPlace) goBack() error {
	ids, err := p.intents()
	if err != nil || len(ids) == 0 {
		return err
	}
	id, err := p.current()
	if _, known := p.list(id); err == nil && id != "" && !known {
		err = errors.New("the file list of the previous set is not known")
	}
	if err == nil {
		err = p.refuse(id)
	}
	if err == nil {
		err = p.replace(id)
	}
	if err != nil {
		return fmt.Errorf("the root contains files of several sets: %w", err)
	}
	return nil
}

func (p *inPlace) swap(id string) error {
	if _, known := p.list(id); !known {
		return errors.New("its file list is not known")
	}
	if err := p.refuse(id); err != nil {
		return err
	}
	ids, err := p.intents()
	if err != nil {
		return err
	}
	ids = append(slices.DeleteFunc(ids, func(other string) bool { return other == id }), id)
	if err := writeState(p.state, intentFile, []byte(strings.Join(ids, "\n")), private()); err != nil {
		return err
	}
	if err := p.replace(id); err != nil {
		return errors.Join(err, p.goBack())
	}
	return nil
}

// oldFiles are the files of the set in place, and the existing files of sets that were not
// completed.
func (p *inPlace) oldFiles() (map[string]bool, error) {
	id, err := p.current()
	if err != nil {
		return nil, err
	}
	ids, err := p.intents()
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	current, _ := p.list(id)
	maps.Copy(files, current)
	for _, intent := range ids {
		begun, _ := p.list(intent)
		for name := range begun {
			if p.placed(intent, name) {
				files[name] = true
			}
		}
	}
	return files, nil
}

// placed reports whether a file is the one of a set: by its inode, or by its content where
// there are no hard links.
func (p *inPlace) placed(id, name string) bool {
	now, err := p.base.Lstat(name)
	if err != nil || !now.Mode().IsRegular() {
		return false
	}
	staged, err := p.base.Lstat(path.Join(p.dir(id), name))
	if err != nil || now.Size() != staged.Size() {
		return false
	}
	if os.SameFile(now, staged) {
		return true
	}
	a, err := digest(p.base, name)
	if err != nil {
		return false
	}
	b, err := digest(p.base, path.Join(p.dir(id), name))
	return err == nil && a == b
}

// replace replaces the set in place with another.
func (p *inPlace) replace(id string) error {
	files, _ := p.list(id)
	old, err := p.oldFiles()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := p.makeWay(name, old); err != nil {
			return err
		}
		if err := p.place(path.Join(p.dir(id), name), name); err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
	}
	for name := range old {
		if !files[name] {
			if err := p.remove(name); err != nil {
				return err
			}
		}
	}
	if err := p.removeLinks(); err != nil {
		return err
	}
	if err := writeState(p.state, currentFile, []byte(id), private()); err != nil {
		return err
	}
	return p.state.Remove(intentFile)
}

// makeWay creates the directories of a file. Where a file becomes a directory, or the other
// way round, the old one has to be removed first.
func (p *inPlace) makeWay(name string, old map[string]bool) error {
	if info, err := p.base.Lstat(name); err == nil && info.IsDir() {
		for below := range old {
			if strings.HasPrefix(below, name+"/") {
				if err := p.remove(below); err != nil {
					return err
				}
			}
		}
	}
	return p.makeParents(path.Dir(name))
}

func (p *inPlace) makeParents(dir string) error {
	if dir == "." {
		return nil
	}
	if err := p.makeParents(path.Dir(dir)); err != nil {
		return err
	}
	info, err := p.base.Lstat(dir)
	if err == nil && info.IsDir() {
		return p.finishDir(dir)
	}
	if err == nil {
		if err := p.base.Remove(dir); err != nil {
			return err
		}
	}
	return p.makeDir(dir)
}

// place sets a file's content in one step. An unchanged file stays untouched, so readers
// don't see a change where there is none.
func (p *inPlace) place(from, name string) error {
	staged, err := p.base.Stat(from)
	if err != nil {
		return err
	}
	if now, err := p.base.Lstat(name); err == nil && os.SameFile(now, staged) {
		return nil
	}
	temporary := path.Join(stateDir, placeFile)
	if err := p.base.RemoveAll(temporary); err != nil {
		return err
	}
	if err := p.base.Link(from, temporary); err != nil {
		if err := p.copyFile(from, temporary, staged.Mode().Perm()); err != nil {
			return err
		}
	}
	return p.base.Rename(temporary, name)
}

// copyFile is for file systems without hard links.
func (p *inPlace) copyFile(from, to string, mode fs.FileMode) error {
	in, err := plainfile.OpenIn(p.base, from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := p.base.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

// remove removes a file, and its directories as far as they are empty.
func (p *inPlace) remove(name string) error {
	if p.link(name) != "" {
		return nil // the current file belongs to another program
	}
	info, err := p.base.Lstat(name)
	if err != nil || info.IsDir() {
		return nil //nolint:nilerr // it is gone, or its name has become a directory
	}
	if err := p.base.Remove(name); err != nil {
		return err
	}
	p.removeEmpty(path.Dir(name))
	return nil
}

// removeEmpty removes directories up to the first one that isn't empty.
func (p *inPlace) removeEmpty(dir string) {
	for dir != "." && p.base.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
}

// removeLinks removes the leftovers of the links layout in the same root.
func (p *inPlace) removeLinks() error {
	l := &links{base: p.base}
	if err := l.unlinkOthers(nil); err != nil {
		return err
	}
	err := p.base.Remove(dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
