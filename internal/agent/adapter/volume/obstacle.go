package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Obstacles lists the files of a set that can't be placed because of another program's file.
// Only the files layout can detect that before it publishes.
func (v *Volume) Obstacles(tree filemap.Tree) map[string]error {
	p, ok := v.swapper.(*inPlace)
	if !ok {
		return nil
	}
	old, err := p.oldFiles()
	if err != nil {
		return nil // publishing will report it
	}
	found := map[string]error{}
	for _, f := range tree.Files {
		if err := p.inTheWay("", f.Path, old); err != nil {
			found[f.Path] = err
		}
	}
	return found
}

// refuse detects another program's files that block a set.
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

// inTheWay detects another program's file, link or directory that blocks a file. A link in
// the place of a directory is never replaced: its target may be in use, and the agent
// doesn't write through it.
func (p *inPlace) inTheWay(id, name string, old map[string]bool) error {
	for at := range downTo(name) {
		info, err := p.base.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing can exist below it
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
			return fmt.Errorf("%s exists, and this agent didn't write it: remove it, use another root, or set overwrite", at)
		}
	}
	return nil
}

// downTo yields the directories of a file from the top, and the file last: a, a/b, a/b/c.
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

// link is the first directory of a file that is a link; empty means none.
func (p *inPlace) link(name string) string {
	for at := range downTo(name) {
		if info, err := p.base.Lstat(at); at != name && err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}

// ours reports whether this agent made a name: as a file of the set in place, as a file of
// the next set before an agent was killed, or as a link of the links layout.
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

// holdsOthers reports whether a directory contains files that are not in the list.
func (p *inPlace) holdsOthers(dir string, files map[string]bool) bool {
	others := false
	_ = fs.WalkDir(plainfile.Dirs(p.base), dir, func(name string, d fs.DirEntry, err error) error {
		others = others || err != nil || (!d.IsDir() && !files[name])
		return err
	})
	return others
}
