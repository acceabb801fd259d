package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

// cutList leaves of a generation's list what a full disk would have left.
func cutList(t *testing.T, root string, layout volume.Layout, id string, cut func(string) string) {
	t.Helper()
	name := filepath.Join(volume.StateDir(root, layout), "finished", id)
	write(t, name, cut(read(t, name)))
}

// A list that a full disk cut is none: the generation is built anew, and what it
// has is known.
func TestACutListIsNotFinished(t *testing.T) {
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, nil)
			put(t, v, map[string]string{"a": "1", "dir/b": "1"})
			second := map[string]string{"a": "2", "dir/b": "1", "end": "2"}
			id := stage(t, v, second)
			cutList(t, root, layout, id, func(list string) string { return list[:len("files\x00a\x00di")] })
			if v.Has(id) {
				t.Fatal("half a list counts as a whole one")
			}
			put(t, v, second)
			wantVisible(t, root, second)
			put(t, v, map[string]string{"end": "3"})
			wantVisible(t, root, map[string]string{"end": "3"})
		})
	}
}

// A list that cannot be written is not there.
func TestAListThatCannotBeWritten(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	tree := keep(t, v, map[string]string{"a": "1"})
	id := tree.ID(nil, "")
	at := filepath.Join(volume.StateDir(root, volume.Files), "finished", id)
	if err := os.MkdirAll(filepath.Join(at, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Stage(id, tree); err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{at, at + ".tmp"} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", name, err)
		}
	}
	put(t, v, map[string]string{"a": "1"})
	wantVisible(t, root, map[string]string{"a": "1"})
}

// Whatever became of its list, the directory that readers are in is not removed
// to be built anew.
func TestTheVisibleGenerationIsNotBuiltAnew(t *testing.T) {
	for _, layout := range wholeLayouts {
		v, root := open(t, layout, nil)
		files := map[string]string{"dir/a": "1"}
		id := put(t, v, files)
		before, err := os.Stat(filepath.Join(root, "dir"))
		if err != nil {
			t.Fatal(err)
		}
		cutList(t, root, layout, id, func(string) string { return "" })
		stage(t, v, files)
		if after, err := os.Stat(filepath.Join(root, "dir")); err != nil || !os.SameFile(before, after) || !v.Has(id) {
			t.Errorf("%s: the directory was made anew (%v), finished: %v", layout, err, v.Has(id))
		}
	}
}
