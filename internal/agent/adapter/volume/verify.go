package volume

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// sealDir contains, for every generation, a digest of its staged files. Only the agent can
// read it, because a reader could test guesses of a Secret's value.
const sealDir = "seals"

func (v *Volume) seal(id string, tree filemap.Tree) error {
	if err := v.state.Mkdir(sealDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return writeState(v.state, path.Join(sealDir, id), []byte(tree.ID(nil, "")), private())
}

// Verify returns why a generation differs from its staged files: the visible one as readers
// find it, another one in its own directory. It can't verify files of another user with a
// strict mode, and accepts them.
func (v *Volume) Verify(id string) error {
	tree, err := v.found(id)
	if errors.Is(err, fs.ErrPermission) && v.opts.givesAway() {
		return nil
	}
	var seal []byte
	if err == nil {
		seal, err = v.ReadState(path.Join(sealDir, id))
	}
	if err == nil && tree.ID(nil, "") != string(seal) {
		err = errors.New("another program changed its files")
	}
	if err != nil {
		return fmt.Errorf("generation %s is damaged: %w", id, err)
	}
	return nil
}

// found reads the current files of a generation.
func (v *Volume) found(id string) (filemap.Tree, error) {
	files, known := v.fileList(id)
	if !known {
		return filemap.Tree{}, errors.New("its file list is not known")
	}
	dir, err := v.whereRead(id)
	if err != nil {
		return filemap.Tree{}, err
	}
	var tree filemap.Tree
	for _, name := range slices.Sorted(maps.Keys(files)) {
		digest, err := digest(v.base, path.Join(dir, name))
		if err != nil {
			return filemap.Tree{}, fmt.Errorf("file %s: %w", name, withoutPath(err))
		}
		tree.Files = append(tree.Files, filemap.File{Path: name, Digest: digest})
	}
	return tree, nil
}

// whereRead is where readers find a generation.
func (v *Volume) whereRead(id string) (string, error) {
	current, err := v.swapper.current()
	if err != nil || current != id || v.opts.Layout == Exchange {
		return v.swapper.dir(id), err
	}
	if p, ok := v.swapper.(*inPlace); ok {
		begun, err := p.intents()
		if err == nil && len(begun) > 0 {
			err = errors.New("the root contains files of several sets")
		}
		return ".", err
	}
	return ".", nil
}

// digest is a file's content digest.
func digest(root *os.Root, name string) (filemap.Digest, error) {
	f, err := plainfile.OpenIn(root, name)
	if err != nil {
		return filemap.Digest{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return filemap.Digest(h.Sum(nil)), err
}

// withoutPath removes the path, which the message already contains.
func withoutPath(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return wrapped.Err
	}
	return err
}

// repair restores the files of a generation that another program changed or removed, each in
// one step. Readers may be in it.
func (v *Volume) repair(dir string, tree filemap.Tree) error {
	for _, f := range tree.Files {
		if err := filemap.CheckPath(f.Path); err != nil {
			return err
		}
		target := path.Join(dir, f.Path)
		digest, err := digest(v.base, target)
		if err == nil && digest == f.Digest || errors.Is(err, fs.ErrPermission) && v.opts.givesAway() {
			continue
		}
		if err := v.putBack(dir, f); err != nil {
			return fmt.Errorf("restore %s: %w", f.Path, err)
		}
	}
	return nil
}

func (v *Volume) putBack(dir string, f filemap.File) error {
	temporary := path.Join(baseName(v.state), placeFile)
	if err := errors.Join(v.base.RemoveAll(temporary), v.place(f, temporary)); err != nil {
		return err
	}
	// The kept content may be the very file that the other program wrote into.
	if digest, err := digest(v.base, temporary); err == nil && digest != f.Digest {
		return errors.New("another program wrote into the file itself: restart the agent to read the source again")
	}
	made := map[string]bool{}
	for parent := path.Dir(f.Path); parent != "."; parent = path.Dir(parent) {
		made[parent] = v.isDir(path.Join(dir, parent))
	}
	if err := v.makeParents(dir, path.Dir(f.Path), made); err != nil {
		return err
	}
	return v.base.Rename(temporary, path.Join(dir, f.Path))
}
