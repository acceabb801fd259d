package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Stage builds a generation next to the visible one and returns its directory. In a
// generation that is complete or visible, it rewrites only the files that differ.
func (v *Volume) Stage(id string, tree filemap.Tree) (string, error) {
	dir := v.swapper.dir(id)
	if err := v.stage(id, dir, tree); err != nil {
		return "", fmt.Errorf("stage generation %s: %w", id, err)
	}
	return filepath.Join(v.base.Name(), dir), nil
}

func (v *Volume) stage(id, dir string, tree filemap.Tree) error {
	if v.Has(id) {
		return v.repair(dir, tree)
	}
	visible, err := v.shows(id)
	if err != nil {
		return err
	}
	if visible {
		err = v.repair(dir, tree)
	} else {
		err = v.build(id, dir, tree)
	}
	if err != nil {
		return err
	}
	return v.markFinished(id, tree)
}

// shows reports whether readers are inside a generation's own directory. Such a directory is
// never rebuilt as a whole.
func (v *Volume) shows(id string) (bool, error) {
	current, err := v.swapper.current()
	return v.opts.Layout != Files && current == id, err
}

func (v *Volume) build(id, dir string, tree filemap.Tree) error {
	if err := v.base.RemoveAll(dir); err != nil {
		return err
	}
	if err := v.base.Mkdir(dir, 0o700); err != nil {
		return err
	}
	made := map[string]bool{}
	for _, f := range tree.Files {
		if err := filemap.CheckPath(f.Path); err != nil {
			return err
		}
		if err := v.makeParents(dir, path.Dir(f.Path), made); err != nil {
			return err
		}
		if err := v.place(f, path.Join(dir, f.Path)); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
	}
	if err := v.finishDir(dir); err != nil {
		return err
	}
	return v.swapper.staged(id)
}

// makeParents creates the directories of one file, each once.
func (v *Volume) makeParents(dir, parent string, made map[string]bool) error {
	if parent == "." || made[parent] {
		return nil
	}
	if err := v.makeParents(dir, path.Dir(parent), made); err != nil {
		return err
	}
	made[parent] = true
	full := path.Join(dir, parent)
	if err := v.base.Mkdir(full, 0o700); err != nil {
		return err
	}
	return v.finishDir(full)
}

// finishDir sets a directory's mode and group through its own handle, which can't be
// replaced by a link in between. The agent stays its owner, because it has to fill and to
// remove it.
func (v *Volume) finishDir(dir string) error {
	d, err := plainfile.OpenDir(v.base, dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if v.opts.GID >= 0 {
		if err := d.Chown(-1, v.opts.GID); err != nil {
			return fmt.Errorf("%w: changing the group requires the CHOWN capability", err)
		}
	}
	if err := d.Chmod(v.opts.DirMode); err != nil {
		return err
	}
	if v.opts.Durable {
		return d.Sync()
	}
	return nil
}

// place links an object into a generation. It copies instead on a file system without hard
// links, and when another user will own the file.
func (v *Volume) place(f filemap.File, target string) error {
	object := path.Join(baseName(v.state), v.objects.name(f.Digest))
	if v.opts.givesAway() {
		return v.copyObject(object, target)
	}
	err := v.base.Link(object, target)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return v.copyObject(object, target)
}

func (v *Volume) copyObject(object, target string) error {
	in, err := plainfile.OpenIn(v.base, object)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := v.base.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, finishFile(out, v.opts), out.Close())
}

// Publish makes a staged generation visible to readers.
func (v *Volume) Publish(id string) error {
	if !v.Has(id) {
		return fmt.Errorf("publish generation %s: it is not staged", id)
	}
	old, err := v.swapper.current()
	if err != nil {
		return err
	}
	foreign, err := v.makeRoomFor(old, id)
	if err != nil {
		return fmt.Errorf("publish generation %s: %w", id, err)
	}
	if err := v.swapper.swap(id); err != nil {
		return fmt.Errorf("publish generation %s: %w", id, err)
	}
	if err := v.carry(old, id, foreign); err != nil {
		return fmt.Errorf("publish generation %s: %w", id, err)
	}
	if old != "" && old != id {
		v.retired[old] = v.now()
	}
	delete(v.retired, id)
	if v.opts.Durable {
		return v.syncBase()
	}
	return nil
}

func (v *Volume) syncBase() error {
	d, err := plainfile.OpenDir(v.base, ".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Prune removes generations that are neither visible nor to be kept, once their grace has
// passed, and contents that no set needs any more. It returns when the next one is due; the
// zero time means nothing is left to do. A generation that can't be removed doesn't stop the
// others.
func (v *Volume) Prune(keep []string, live func() map[filemap.Digest]bool) (time.Time, error) {
	current, err := v.swapper.current()
	if err != nil {
		return time.Time{}, err
	}
	ids, err := v.swapper.generations()
	if err != nil {
		return time.Time{}, err
	}
	var next time.Time
	var failures []error
	if p, ok := v.swapper.(*inPlace); ok {
		failures = append(failures, p.goBack())
		begun, err := p.intents()
		failures, keep = append(failures, err), append(begun, keep...)
	}
	for _, id := range ids {
		if id == current || slices.Contains(keep, id) {
			continue
		}
		due := v.retired[id].Add(v.opts.Grace)
		if v.now().Before(due) {
			next = earliest(next, due)
			continue
		}
		if err := v.retire(id, current); err != nil {
			failures = append(failures, fmt.Errorf("generation %s is left over: %w", id, err))
		}
	}
	return next, errors.Join(append(failures, v.objects.sweep(live))...)
}

// retire removes one generation. A program that had the old directory open may have written
// into it since; those files move to the current generation first. A generation stays while
// the current one contains a link into it.
func (v *Volume) retire(id, current string) error {
	foreign, err := v.makeRoomFor(id, current)
	if err == nil {
		err = v.carry(id, current, foreign)
	}
	if err != nil || v.holds(id, foreign) {
		return err
	}
	return v.removeGeneration(id)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// removeGeneration first removes the generation from the list of complete ones, so an agent
// killed half-way doesn't leave a generation that looks complete.
func (v *Volume) removeGeneration(id string) error {
	if err := v.state.RemoveAll(finishedDir + "/" + id); err != nil {
		return err
	}
	if err := v.base.RemoveAll(v.swapper.dir(id)); err != nil {
		return fmt.Errorf("remove generation %s: %w", id, err)
	}
	delete(v.retired, id)
	return errors.Join(v.state.RemoveAll(sealDir+"/"+id), v.swapper.forget(id))
}
