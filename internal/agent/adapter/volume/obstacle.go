package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Obstacles says for which files of a set another program has something in the way
// that cannot be replaced. Only the layout with files can tell before it publishes.
func (v *Volume) Obstacles(tree filemap.Tree) map[string]error {
	p, ok := v.swapper.(*inPlace)
	if !ok {
		return nil
	}
	old, err := p.oldFiles()
	if err != nil {
		return nil // publishing will say so
	}
	found := map[string]error{}
	for _, f := range tree.Files {
		if err := p.inTheWay("", f.Path, old); err != nil {
			found[f.Path] = err
		}
	}
	return found
}

// refuse finds what another program has in the way of a set.
func (p *inPlace) refuse(id string) error {
	old, err := p.oldFiles()
	if err != nil {
		return err
	}
	files, _ := p.list(id)
	for name := range files {
		if err := p.inTheWay(id, name, old); err != nil {
			return err
		}
	}
	return nil
}

// inTheWay finds a file, link or directory of another program in the way of a file.
// A link in the place of a directory is never replaced: what it leads to may be in
// use, and nothing is written through it.
func (p *inPlace) inTheWay(id, name string, old map[string]bool) error {
	for at := range downTo(name) {
		info, err := p.base.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nor is there anything below
		}
		if err != nil {
			return err
		}
		switch parent := at != name; {
		case parent && info.IsDir():
		case p.ours(id, at, info, old):
			return nil
		case parent && info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link, and files go into real directories: remove it, or use another directory", at)
		case p.overwrite && !info.IsDir():
			return nil
		default:
			return fmt.Errorf("%s is there but was not written by this agent: remove it, use another root, or set overwrite", at)
		}
	}
	return nil
}

// downTo gives the directories of a file from the top, and the file last: a, a/b,
// a/b/c.
func downTo(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && !yield(name[:i]) {
				return
			}
		}
		yield(name)
	}
}

// link is the directory of a file that is a link; empty means none.
func (p *inPlace) link(name string) string {
	for at := range downTo(name) {
		if info, err := p.base.Lstat(at); at != name && err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// ours says whether a name was made by this agent: as a file of the set in place,
// as one of the set to come by an agent that was killed, or as a link of the
// layout with links.
func (p *inPlace) ours(id, name string, info fs.FileInfo, old map[string]bool) bool {
	if info.IsDir() {
		return anyBelow(name, old) && !p.holdsOthers(name, old)
	}
	return old[name] || p.placed(id, name) || (&links{base: p.base}).ours(name)
}

func anyBelow(dir string, files map[string]bool) bool {
	for name := range files {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// holdsOthers says whether a directory has files that are not in the list.
func (p *inPlace) holdsOthers(dir string, files map[string]bool) bool {
	others := false
	_ = fs.WalkDir(p.base.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		others = others || err != nil || (!d.IsDir() && !files[name])
		return err
	})
	return others
}
