package volume

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// finishedDir contains, for every generation that was staged completely, the list of its
// files. So the agent never mistakes a killed agent's incomplete directory for a generation,
// or the application's file for its own.
const finishedDir = "finished"

// Has reports whether a generation is complete on the disk.
func (v *Volume) Has(id string) bool {
	if id == "" {
		return false
	}
	_, known := v.fileList(id)
	return known
}

// A list of files begins with a header and ends with a terminator. A list without it was cut
// by a full disk, or an older agent wrote it. File names are never empty, so no name looks
// like the terminator.
const (
	listHeader = "files\x00"
	listEnd    = "\x00end\x00"
)

func (v *Volume) markFinished(id string, tree filemap.Tree) error {
	names := make([]string, 0, len(tree.Files))
	for _, f := range tree.Files {
		names = append(names, f.Path)
	}
	if err := errors.Join(v.seal(id, tree), v.writeList(id, names)); err != nil {
		return errors.Join(err, v.state.RemoveAll(finishedDir+"/"+id)) // an existing file is not this list
	}
	return nil
}

// writeList replaces a list in one step, so it is never partial.
func (v *Volume) writeList(id string, names []string) error {
	if err := v.state.Mkdir(finishedDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	list := []byte(listHeader)
	for _, name := range names {
		list = append(append(list, name...), 0)
	}
	return writeState(v.state, finishedDir+"/"+id, append(list, listEnd...), private())
}

// fileList are the files that a generation was staged with; known is false when that list is
// missing or incomplete.
func (v *Volume) fileList(id string) (files map[string]bool, known bool) {
	raw, err := plainfile.ReadIn(v.state, finishedDir+"/"+id, plainfile.Large)
	list, whole := strings.CutSuffix(string(raw), "\x00"+listEnd)
	if err != nil || !whole {
		return nil, false
	}
	list, known = strings.CutPrefix(list+"\x00", listHeader)
	if !known {
		return nil, false
	}
	return listed(list), true
}

func listed(list string) map[string]bool {
	files := map[string]bool{}
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == 0 }) {
		files[name] = true
	}
	return files
}

// completeLists adds the terminator to lists that an older agent wrote without one. The
// generation was complete when its list was started, but the list itself may be cut. A
// generation whose files stay unknown counts as unfinished.
func (v *Volume) completeLists() error {
	entries, err := fs.ReadDir(plainfile.Dirs(v.state), finishedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		id := e.Name()
		if strings.HasSuffix(id, ".tmp") || v.Has(id) {
			continue
		}
		names, known := v.oldList(id)
		if !known {
			continue
		}
		if err := v.writeList(id, slices.Sorted(maps.Keys(names))); err != nil {
			return err
		}
	}
	return nil
}

// oldList are the files of an older agent's generation: those in its list, even if it is
// cut, and those in its directory that can only be the agent's.
func (v *Volume) oldList(id string) (files map[string]bool, known bool) {
	if v.opts.Layout == Exchange {
		var record generationRecord
		raw, err := plainfile.ReadIn(v.state, generationName(id)+recordSuffix, plainfile.Large)
		if err != nil || json.Unmarshal(raw, &record) != nil {
			return nil, false
		}
		return listed(strings.Join(record.Files, "\x00")), true
	}
	raw, err := plainfile.ReadIn(v.state, finishedDir+"/"+id, plainfile.Large)
	if err != nil {
		return nil, false
	}
	list, known := strings.CutPrefix(string(raw), listHeader)
	if !known {
		list = ""
	}
	files = listed(list[:strings.LastIndexByte(list, 0)+1]) // a name without its terminator is incomplete
	base, objects := generationPrefix+id, v.objectInfos()
	err = fs.WalkDir(plainfile.Dirs(v.base), base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		same := func(object fs.FileInfo) bool { return os.SameFile(info, object) }
		// In the files layout, no other program has a reason to write there.
		if v.opts.Layout == Files || slices.ContainsFunc(objects[info.Size()], same) {
			files[path.Clean(strings.TrimPrefix(p, base+"/"))] = true
			known = true
		}
		return nil
	})
	return files, known && err == nil
}

// objectInfos lists the contents on the disk by size.
func (v *Volume) objectInfos() map[int64][]fs.FileInfo {
	found := map[int64][]fs.FileInfo{}
	entries, _ := fs.ReadDir(plainfile.Dirs(v.state), objectDir) // without them only the list counts
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			found[info.Size()] = append(found[info.Size()], info)
		}
	}
	return found
}
