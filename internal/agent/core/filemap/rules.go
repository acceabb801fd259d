package filemap

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Collision is the policy for two sources with the same file.
type Collision string

// The collision policies.
const (
	// Refuse keeps the set that is in place and reports both sources.
	Refuse Collision = "error"
	// Prefix puts namespace, kind and name of its object before every file name.
	Prefix Collision = "prefix"
	// FirstWins uses the file of the namespace that had it first, and within a namespace that of
	// the object whose name comes first.
	FirstWins Collision = "first"
)

// Item maps one key to a path.
type Item struct {
	// Object limits the item to objects of this name; empty means any.
	Object string
	Key    string
	Path   string
}

// String returns the item in the syntax of the command line.
func (i Item) String() string {
	if i.Object == "" {
		return i.Key + "=" + i.Path
	}
	return i.Object + ":" + i.Key + "=" + i.Path
}

// ParseItem parses [OBJECT:]KEY=PATH.
func ParseItem(s string) (Item, error) {
	key, target, ok := strings.Cut(s, "=")
	if !ok {
		return Item{}, fmt.Errorf("item %q: want KEY=PATH or OBJECT:KEY=PATH", s)
	}
	item := Item{Key: key, Path: target}
	if object, rest, scoped := strings.Cut(key, ":"); scoped {
		item.Object, item.Key = object, rest
		if object == "" {
			return Item{}, fmt.Errorf("item %q: the object before the colon is empty", s)
		}
	}
	if item.Key == "" {
		return Item{}, fmt.Errorf("item %q: the key is empty", s)
	}
	if err := CheckPath(item.Path); err != nil {
		return Item{}, fmt.Errorf("item %q: %w", s, err)
	}
	return item, nil
}

// Rules configure how keys become files.
type Rules struct {
	// Items map single keys to paths; other keys keep their names.
	Items []Item
	// Separator is replaced by a slash inside keys, for example "__"; empty means none.
	Separator string
	// Include, when not empty, limits the files to keys that match one of the globs.
	Include []string
	// Exclude drops keys that match one of the globs.
	Exclude []string
	// Collision is the policy for two sources with the same file; empty means Refuse.
	Collision Collision
	// Subdirs lets an object choose a directory below the root for its files.
	Subdirs bool
	// Root is a directory that objects may name in front of their own; empty means that their
	// directories are relative to the root.
	Root string
	// LeaveOut drops keys that can't become files and reports them, instead of refusing the
	// whole set: for selections in which any user may create objects.
	LeaveOut bool
	// Shared means that the objects come from several namespaces, whose users may not trust each
	// other.
	Shared bool
	// MaxBytes is how much the objects may weigh together; 0 means no limit. Share is how much of
	// it the objects of one namespace may weigh if the set is Shared; 0 means all.
	MaxBytes, Share int64
	// Later means that an earlier set is in place, and Owners maps paths to the namespaces that
	// had them first; see Since.
	Later  bool
	Owners map[string]string
}

// Since returns the rules for a set that replaces another: a mapped key that is missing was
// removed, and its file is removed like that of any other key. A path stays with the namespace
// that owns it.
func (r Rules) Since(published bool, owners map[string]string) Rules {
	r.Later, r.Owners = published, owners
	return r
}

// Validate reports every mistake in the rules.
func (r Rules) Validate() error {
	var mistakes []error
	switch r.Collision {
	case "", Refuse, Prefix, FirstWins:
	default:
		mistakes = append(mistakes, fmt.Errorf("collision policy %q: want error, prefix or first", r.Collision))
	}
	for _, glob := range slices.Concat(r.Include, r.Exclude) {
		if _, err := path.Match(glob, ""); err != nil {
			mistakes = append(mistakes, fmt.Errorf("key pattern %q: %w", glob, err))
		}
	}
	for _, item := range r.Items {
		if err := CheckPath(item.Path); err != nil {
			mistakes = append(mistakes, fmt.Errorf("item %s: %w", item, err))
		}
	}
	if r.MaxBytes < 0 {
		mistakes = append(mistakes, fmt.Errorf("maximum size %d: must not be negative", r.MaxBytes))
	}
	return errors.Join(mistakes...)
}

// subdir is the prefix that an object's own directory adds to its files. "./team", "team/"
// and "team" are the same. A directory outside the root stays as it is, and CheckPath
// refuses the resulting path.
func (r Rules) subdir(o Object) string {
	dir := path.Clean(o.Subdir)
	if root := path.Clean(r.Root); r.Root != "" && (dir == root || strings.HasPrefix(dir, root+"/")) {
		dir = path.Clean("." + strings.TrimPrefix(dir, root))
	}
	if dir == "." {
		return ""
	}
	return dir + "/"
}

func (r Rules) wants(key string) bool {
	if len(r.Include) > 0 && !matchesAny(r.Include, key) {
		return false
	}
	return !matchesAny(r.Exclude, key)
}

func matchesAny(globs []string, key string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, key)
		return err == nil && ok
	})
}

func (r Rules) item(o Object, key string) (Item, bool) {
	for _, item := range r.Items {
		if item.Key == key && (item.Object == "" || item.Object == o.Name) {
			return item, true
		}
	}
	return Item{}, false
}

func (r Rules) itemSet() map[Item]bool {
	set := map[Item]bool{}
	for _, item := range r.Items {
		set[item] = true
	}
	return set
}

// The longest names that Linux accepts, and bounds on paths that an object can request.
const (
	maxName  = 255
	maxPath  = 4095
	maxDepth = 64
	// MaxSubdir is the longest directory that an object may request.
	MaxSubdir = 512
)

// CheckPath refuses every path that is not plainly a file below its root. Elements that
// begin with two dots are reserved for generations and the agent's own state.
func CheckPath(p string) error {
	switch {
	case p == "":
		return errors.New("the path is empty")
	case strings.HasPrefix(p, "/"):
		return fmt.Errorf("path %q is absolute; make it relative to the root", p)
	case len(p) > maxPath:
		return fmt.Errorf("the path is %d bytes long, and the limit is %d", len(p), maxPath)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("path %q contains a NUL byte", p)
	case strings.Count(p, "/") >= maxDepth:
		return fmt.Errorf("path %.40q… has more than %d elements", p, maxDepth)
	}
	for element := range strings.SplitSeq(p, "/") {
		if err := checkElement(p, element); err != nil {
			return err
		}
	}
	return nil
}

func checkElement(p, element string) error {
	switch {
	case element == "" || element == ".":
		return fmt.Errorf("path %q contains an empty element", p)
	case element == "..":
		return fmt.Errorf("path %q leaves the root", p)
	case strings.HasPrefix(element, ".."):
		return fmt.Errorf("path %q: names that begin with two dots are reserved", p)
	case len(element) > maxName:
		return fmt.Errorf("path %.40q…: a name is %d bytes long, and the limit is %d", p, len(element), maxName)
	}
	return nil
}
