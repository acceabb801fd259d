package volume_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

func TestPruneKeepsForTheGraceAndRemovesThen(t *testing.T) {
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			now := time.Unix(1000, 0)
			opts := volume.DefaultOptions(filepath.Join(t.TempDir(), "config"))
			opts.Layout, opts.Grace = layout, time.Minute
			v, err := volume.Open(opts, func() time.Time { return now })
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			first := put(t, v, map[string]string{"a": "1"})
			second := put(t, v, map[string]string{"a": "2"})
			third := put(t, v, map[string]string{"a": "3"})

			next, err := v.Prune([]string{second}, nothingLive)
			if err != nil || !next.Equal(now.Add(time.Minute)) || !v.Has(first) {
				t.Errorf("within the grace: next %v, error %v, first still there: %v", next, err, v.Has(first))
			}
			now = now.Add(time.Minute)
			next, err = v.Prune([]string{second}, nothingLive)
			if err != nil || !next.IsZero() || v.Has(first) || !v.Has(second) || !v.Has(third) {
				t.Errorf("after the grace: next %v, error %v, generations %v %v %v", next, err, v.Has(first), v.Has(second), v.Has(third))
			}
			wantVisible(t, opts.Root, map[string]string{"a": "3"})
		})
	}
}

func TestUnneededContentsAreRemoved(t *testing.T) {
	v, root := open(t, volume.Links, func(o *volume.Options) { o.Grace = 0 })
	old := keep(t, v, map[string]string{"a": "old"})
	pinned, err := v.Keep([]byte("read but not yet listed"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, v, map[string]string{"a": "new"})
	if _, err := v.Prune(nil, nothingLive); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Stage("x", old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old content is still there: %v", err)
	}
	if _, err := v.Stage("y", filemap.Tree{Files: []filemap.File{{Path: "p", Digest: pinned}}}); err != nil {
		t.Errorf("content that was just read is gone: %v", err)
	}
	wantVisible(t, root, map[string]string{"a": "new"})
}

// A killed agent leaves whatever it was doing. Nothing of it may look whole.
func TestHalfWrittenGenerationsAreNotTaken(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	put(t, v, map[string]string{"a": "1"})
	tree := keep(t, v, map[string]string{"a": "2", "b": "3"})
	v.Close()
	half := filepath.Join(root, "..gen-"+tree.ID(nil, ""))
	if err := os.Mkdir(half, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(half, "a"), "2")

	v = reopen(t, root, volume.Links, nil)
	put(t, v, map[string]string{"a": "2", "b": "3"})
	wantVisible(t, root, map[string]string{"a": "2", "b": "3"})
}

func TestADamagedObjectIsWrittenAgain(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	keep(t, v, map[string]string{"a": "whole"})
	v.Close()
	objects, err := filepath.Glob(filepath.Join(root, "..lockstep", "objects", "*"))
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v (%v)", objects, err)
	}
	write(t, objects[0], "wh")
	v = reopen(t, root, volume.Links, nil)
	put(t, v, map[string]string{"a": "whole"})
	wantVisible(t, root, map[string]string{"a": "whole"})
}

// TestKeepingAgainReplacesNothing: a link to a file that is replaced at that moment
// cannot be made, so a content that is read a second time leaves its file alone.
func TestKeepingAgainReplacesNothing(t *testing.T) {
	t.Parallel()
	v, root := open(t, volume.Links, nil)
	object := func() fs.FileInfo {
		t.Helper()
		if _, err := v.KeepFrom(strings.NewReader("content")); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(root, "..lockstep", "objects", "*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("objects are %v, error %v, want one", found, err)
		}
		info, err := os.Stat(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if first, second := object(), object(); !os.SameFile(first, second) {
		t.Error("the file of the first reading was replaced")
	}
}
