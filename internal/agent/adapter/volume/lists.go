package volume

import (
	"errors"
	"io/fs"
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
// by a full disk. File names are never empty, so no name looks like the terminator.
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
	files = map[string]bool{}
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == 0 }) {
		files[name] = true
	}
	return files, true
}
