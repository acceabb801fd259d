// Package filemap knows which file each key of a ConfigMap, a Secret or a directory becomes.
// It handles names, sizes and digests, never contents, and it refuses every name that would
// leave its directory.
package filemap

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an object.
type Kind string

// The kinds of objects that files come from.
const (
	ConfigMap Kind = "configmap"
	Secret    Kind = "secret"
	Directory Kind = "directory"
)

// Ref names one object. A directory has no namespace; its name is its path.
type Ref struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form that users see: configmap/default/app.
func (r Ref) String() string {
	if r.Kind == Directory {
		return string(r.Kind) + " " + r.Name
	}
	return string(r.Kind) + "/" + r.Namespace + "/" + r.Name
}

// compare orders objects by namespace and name.
func (r Ref) compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name), cmp.Compare(r.Kind, o.Kind))
}

// Digest is the SHA-256 of one value.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Entry is one key of an object, with its size and digest.
type Entry struct {
	Key    string
	Digest Digest
	Size   int64
	// Unusable says what is in the place of a file, for example a named pipe; empty means a file.
	Unusable string
}

// Object is one source of files.
type Object struct {
	Ref
	// Subdir is the directory that the object itself requests, relative to the root. It requires
	// Rules.Subdirs.
	Subdir  string
	Entries []Entry
	// Created is when the object was created; zero for a directory.
	Created time.Time
	// Omitted is the weight of an object whose contents were not kept, because they exceed
	// Rules.MaxBytes. Such an object has no entries.
	Omitted int64
}

// File is one file of a generation.
type File struct {
	// Path is relative, slash separated and safe: see CheckPath.
	Path   string
	Digest Digest
	Size   int64
	Source Ref
}

// Tree is a complete set of files, sorted by path.
type Tree struct {
	Files []File
	// LeftOut lists the keys that are left out and why; see Rules.LeaveOut.
	LeftOut error
}

// Plan decides which files the objects become. It reports all mistakes together. With a
// mistake it doesn't return a tree, because a partial set is worse than the set that is
// already in place.
func Plan(objects []Object, rules Rules) (Tree, error) {
	if err := rules.tooLarge(objects); err != nil {
		return Tree{}, err
	}
	p := planner{rules: rules, byPath: map[string]File{}, below: map[string]File{}, unused: rules.itemSet()}
	for _, o := range inOrder(objects) {
		p.addObject(o)
	}
	for _, c := range append(p.owned, p.others...) {
		p.addFile(c.File, c.key)
	}
	p.checkItems()
	if err := p.mistakes.join(); err != nil {
		return Tree{}, err
	}
	return Tree{Files: p.sorted(), LeftOut: p.leftOut.join()}, nil
}

// inOrder sorts objects, so every agent with the same objects computes the same result. The
// namespace with the oldest object comes first: a tenant can choose the name of a namespace,
// but not the age of its objects.
func inOrder(objects []Object) []Object {
	oldest := map[string]time.Time{}
	for _, o := range objects {
		if at, known := oldest[o.Namespace]; !known || o.Created.Before(at) {
			oldest[o.Namespace] = o.Created
		}
	}
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(oldest[a.Namespace].Compare(oldest[b.Namespace]), a.compare(b.Ref))
	})
	return objects
}

// candidate is a file that an object would become.
type candidate struct {
	File

	key string
}

// planner collects files and mistakes while Plan walks the objects.
type planner struct {
	rules  Rules
	byPath map[string]File
	// below maps each directory to the first file below it.
	below  map[string]File
	unused map[Item]bool
	// owned are the files of the namespaces that had their names first. They are placed before
	// the others.
	owned, others     []candidate
	mistakes, leftOut findings
}

// findings are errors that are reported together.
type findings struct {
	all  []error
	more int
}

// maxFindings bounds a report: one object can have a hundred thousand keys.
const maxFindings = 20

func (f *findings) add(err error) {
	if len(f.all) == maxFindings {
		f.more++
		return
	}
	f.all = append(f.all, err)
}

func (f *findings) join() error {
	if f.more > 0 {
		return errors.Join(append(f.all, fmt.Errorf("and %d more", f.more))...)
	}
	return errors.Join(f.all...)
}

// refuse records a key that can't become a file. In a set of several namespaces, one tenant's
// mistake doesn't hold up the others, unless it is the first set.
func (p *planner) refuse(mistake error) {
	if p.rules.LeaveOut || p.rules.Shared && p.rules.Later {
		p.leftOut.add(mistake)
		return
	}
	p.mistakes.add(mistake)
}

func (p *planner) addObject(o Object) {
	if o.Omitted > 0 {
		p.leftOut.add(p.rules.omission(o))
		return
	}
	if p.rules.Subdirs && len(o.Subdir) > MaxSubdir {
		p.refuse(fmt.Errorf("%s requests a directory longer than %d bytes", o.Ref, MaxSubdir))
		return
	}
	entries := slices.Clone(o.Entries)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	for _, e := range entries {
		if !p.rules.wants(e.Key) {
			continue
		}
		if e.Unusable != "" {
			p.leftOut.add(fmt.Errorf("key %q of %s: it is %s, not a regular file", e.Key, o.Ref, e.Unusable))
			continue
		}
		c := candidate{File{Path: p.path(o, e.Key), Digest: e.Digest, Size: e.Size, Source: o.Ref}, e.Key}
		if owner, known := p.rules.Owners[c.Path]; known && owner == o.Namespace {
			p.owned = append(p.owned, c)
		} else {
			p.others = append(p.others, c)
		}
	}
}

func (p *planner) addFile(f File, key string) {
	if err := CheckPath(f.Path); err != nil {
		p.refuse(fmt.Errorf("key %q of %s: %w", key, f.Source, err))
		return
	}
	other, taken := p.byPath[f.Path]
	switch {
	case taken && p.rules.Shared && other.Source.Namespace != f.Source.Namespace && (p.rules.Collision == FirstWins || p.rules.Later):
		p.leftOut.add(fmt.Errorf("the file %q of %s is left out: %s had it first", f.Path, f.Source, other.Source))
		return
	case taken && p.rules.Collision == FirstWins:
		return
	case taken:
		p.refuse(fmt.Errorf("%s and %s both have the file %q: rename one, map it as an item, "+
			"or set the collision to prefix or first", other.Source, f.Source, f.Path))
		return
	}
	if other, taken := p.fileOrDirectory(f); taken {
		p.refuse(fmt.Errorf("%s has the file %q and %s has the file %q: a name cannot be both a file and a directory",
			other.Source, other.Path, f.Source, f.Path))
		return
	}
	p.put(f)
}

// fileOrDirectory finds an earlier file that needs this file's name as its directory, or has
// the name of a directory that this file needs.
func (p *planner) fileOrDirectory(f File) (File, bool) {
	if other, taken := p.below[f.Path]; taken {
		return other, true
	}
	for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
		if other, taken := p.byPath[dir]; taken {
			return other, true
		}
	}
	return File{}, false
}

func (p *planner) put(f File) {
	p.byPath[f.Path] = f
	for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
		if _, known := p.below[dir]; !known {
			p.below[dir] = f
		}
	}
}

// path returns the path of one key below the root.
func (p *planner) path(o Object, key string) string {
	name := key
	if item, ok := p.rules.item(o, key); ok {
		delete(p.unused, item)
		return item.Path
	}
	if sep := p.rules.Separator; sep != "" && o.Kind != Directory {
		name = strings.ReplaceAll(name, sep, "/")
	}
	if p.rules.Collision == Prefix && o.Kind != Directory {
		dir, base := path.Split(name)
		name = dir + "namespace_" + o.Namespace + "." + string(o.Kind) + "_" + o.Name + "." + base
	}
	if p.rules.Subdirs && o.Subdir != "" {
		name = p.rules.subdir(o) + name
	}
	return name
}

// checkItems finds items that don't map any key: a typing mistake in the first set, a
// removed key in a later one.
func (p *planner) checkItems() {
	into := &p.mistakes
	if p.rules.Later {
		into = &p.leftOut
	}
	for _, item := range p.rules.Items {
		if p.unused[item] {
			into.add(fmt.Errorf("item %s: no source contains this key", item))
		}
	}
}

func (p *planner) sorted() []File {
	files := make([]File, 0, len(p.byPath))
	for _, f := range p.byPath {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

// idLength is how many hexadecimal digits of the hash name a generation: 80 bits, short
// enough to read out.
const idLength = 20

// ID names the tree by its content. attributes are other properties of the files, such as
// their mode. With a key, the name can't be used to test guesses of a Secret's value.
func (t Tree) ID(key []byte, attributes string) string {
	h := newHash(key)
	writeString(h, attributes)
	for _, f := range t.Files {
		writeString(h, f.Path)
		h.Write(f.Digest[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:idLength]
}

func newHash(key []byte) hash.Hash {
	if len(key) == 0 {
		return sha256.New()
	}
	return hmac.New(sha256.New, key)
}

// writeString writes the length before the text, so different lists of names never produce
// the same bytes.
func writeString(h hash.Hash, s string) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
	h.Write([]byte(s))
}

// Bytes is the sum of the sizes of the tree's files.
func (t Tree) Bytes() int64 {
	var n int64
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

// Owners maps each path to the namespace that its file comes from.
func (t Tree) Owners() map[string]string {
	owners := make(map[string]string, len(t.Files))
	for _, f := range t.Files {
		owners[f.Path] = f.Source.Namespace
	}
	return owners
}

// Without leaves out the files that can't be placed, and records why.
func (t Tree) Without(obstacles map[string]error) Tree {
	var kept Tree
	var leftOut findings
	for _, f := range t.Files {
		if why := obstacles[f.Path]; why != nil {
			leftOut.add(fmt.Errorf("file %q of %s: %w", f.Path, f.Source, why))
			continue
		}
		kept.Files = append(kept.Files, f)
	}
	kept.LeftOut = errors.Join(t.LeftOut, leftOut.join())
	return kept
}

// Changed lists the paths that differ between two trees: added, removed or changed.
func Changed(from, to Tree) []string {
	old := map[string]Digest{}
	for _, f := range from.Files {
		old[f.Path] = f.Digest
	}
	var changed []string
	for _, f := range to.Files {
		if d, ok := old[f.Path]; !ok || d != f.Digest {
			changed = append(changed, f.Path)
		}
		delete(old, f.Path)
	}
	for gone := range old {
		changed = append(changed, gone)
	}
	slices.Sort(changed)
	return changed
}
