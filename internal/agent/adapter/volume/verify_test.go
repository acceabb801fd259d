package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

// What another program did to published files while the agent was down is
// noticed, and the next publish of the same set puts it right. Files of others stay.
func TestDriftIsNoticedAndPutBack(t *testing.T) {
	want := map[string]string{"a": "1", "d/b": "2", "d/deep/c": "3"}
	for name, drift := range map[string]func(file string) error{
		"written into": func(file string) error { return os.WriteFile(file, []byte("other"), 0o600) },
		"replaced": func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("other"), 0o600), os.Rename(file+".new", file))
		},
		"removed":           os.Remove,
		"directory removed": func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	} {
		for _, layout := range layouts {
			t.Run(name+" with "+string(layout), func(t *testing.T) {
				v, root := open(t, layout, nil)
				id := put(t, v, want)
				if err := v.Verify(id); err != nil {
					t.Error(err)
				}
				v.Close()
				if err := drift(filepath.Join(root, "d", "deep", "c")); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(root, "d", "mine"), "mine")

				v = reopen(t, root, layout, nil)
				if err := v.Verify(id); err == nil || !strings.Contains(err.Error(), "generation "+id+" is damaged: ") {
					t.Errorf("error %v", err)
				}
				put(t, v, want)
				if err := v.Verify(id); err != nil {
					t.Error(err)
				}
				wantVisible(t, root, map[string]string{"a": "1", "d/b": "2", "d/deep/c": "3", "d/mine": "mine"})
			})
		}
	}
}

// An editor that writes a new file puts it in the place of our link. That is
// noticed as well; whose file it is, the user has to say.
func TestALinkThatBecameAFile(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	id := put(t, v, map[string]string{"a": "1"})
	v.Close()
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "a"), "edited")
	v = reopen(t, root, volume.Links, nil)
	if err := v.Verify(id); err == nil {
		t.Error("not noticed")
	}
	if err := v.Publish(stage(t, v, map[string]string{"a": "1"})); err == nil || !strings.Contains(err.Error(), "a exists, and this agent didn't write it") {
		t.Errorf("error %v", err)
	}
	v.Close()
	v = reopen(t, root, volume.Links, overwrite)
	put(t, v, map[string]string{"a": "1"})
	wantVisible(t, root, map[string]string{"a": "1"})
}

// A set that is kept for going back is not taken as it is when it is wanted again.
func TestAKeptSetIsLookedAt(t *testing.T) {
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, nil)
			set := map[string]string{"d/a": "1"}
			kept := stage(t, v, set)
			put(t, v, map[string]string{"d/a": "2"})
			tree := keep(t, v, set)
			dir, err := v.Stage(kept, tree)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "d", "a")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			write(t, file, "other")
			if err := v.Verify(kept); err == nil {
				t.Error("not noticed")
			}
			put(t, v, set)
			wantVisible(t, root, set)
		})
	}
}

// A file that was written into is the kept content itself, as long as the agent
// runs. The set is refused rather than published with it.
func TestContentThatWasWrittenInto(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	put(t, v, map[string]string{"a": "1"})
	tree := keep(t, v, map[string]string{"a": "1"})
	if err := os.WriteFile(filepath.Join(root, "a"), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Stage(tree.ID(nil, ""), tree); err == nil || !strings.Contains(err.Error(), "restore a: another program wrote into the file itself") {
		t.Errorf("error %v", err)
	}
}

// When going back from a set that failed in the middle fails as well, files of both
// are there. That is not the set before, and publishing it again puts it right.
func TestFilesOfTwoSetsAreNoSet(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	files := map[string]string{"a": "old", "b": "old"}
	first := put(t, v, files)
	second := stage(t, v, map[string]string{"a": "new", "b": "old", "z": "new"})
	for _, missing := range []string{filepath.Join("..gen-"+first, "a"), filepath.Join("..gen-"+second, "z")} {
		if err := os.Remove(filepath.Join(root, missing)); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Publish(second); err == nil || !strings.Contains(err.Error(), "the root contains files of several sets") {
		t.Errorf("error %v", err)
	}
	wantWalked(t, root, map[string]string{"a": "new", "b": "old"})
	if err := v.Verify(first); err == nil || !strings.Contains(err.Error(), "the root contains files of several sets") {
		t.Errorf("error %v", err)
	}
	put(t, v, files)
	wantWalked(t, root, files)
	if err := v.Verify(first); err != nil {
		t.Error(err)
	}
}
