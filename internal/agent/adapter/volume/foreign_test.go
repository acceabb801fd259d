package volume_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// What the application writes into a published directory stays there, over
// publishing, going back, and a directory that the sources have no more.
func TestFilesOfTheApplicationStay(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, func(o *volume.Options) { o.Grace = 0 })
			first := put(t, v, map[string]string{"conf.d/a": "1", "b": "1"})
			write(t, filepath.Join(root, "conf.d", "mine"), "written by the application")
			mkdir(t, filepath.Join(root, "conf.d", "cache"))
			mkdir(t, filepath.Join(root, "conf.d", "empty"))
			write(t, filepath.Join(root, "conf.d", "cache", "entry"), "cached")
			log, err := os.OpenFile(filepath.Join(root, "conf.d", "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			for step, publish := range []func(){
				func() { put(t, v, map[string]string{"conf.d/a": "2", "b": "1"}) },
				func() { put(t, v, map[string]string{"b": "1"}) },
				func() { publishAgain(t, v, first, map[string]string{"conf.d/a": "1", "b": "1"}) },
			} {
				publish()
				prune(t, v)
				if _, err := log.WriteString("x"); err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(filepath.Join(root, "conf.d", "empty")); err != nil || !info.IsDir() {
					t.Errorf("step %d: the empty directory: %v", step, err)
				}
				for file, want := range map[string]string{"mine": "written by the application", "cache/entry": "cached"} {
					if got := read(t, filepath.Join(root, "conf.d", file)); got != want {
						t.Errorf("step %d: conf.d/%s is %q", step, file, got)
					}
				}
			}
			if got := read(t, filepath.Join(root, "conf.d", "log")); got != "xxx" {
				t.Errorf("the open file became %q", got)
			}
		})
	}
}

// A set that has the name of a file of the application is refused before it is
// published: one of the two would vanish.
func TestAFileOfTheApplicationInTheWay(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, nil)
			put(t, v, map[string]string{"conf.d/a": "1"})
			write(t, filepath.Join(root, "conf.d", "b"), "mine")
			id := stage(t, v, map[string]string{"conf.d/a": "2", "conf.d/b": "theirs"})
			err := v.Publish(id)
			if err == nil || !strings.Contains(err.Error(), "another program wrote conf.d/b into a published directory, and it would be lost") {
				t.Errorf("error %v", err)
			}
			if a, b := read(t, filepath.Join(root, "conf.d", "a")), read(t, filepath.Join(root, "conf.d", "b")); a != "1" || b != "mine" {
				t.Errorf("a is %q, b is %q", a, b)
			}
		})
	}
}

// Whoever has the old directory open may write into it after the swap. That is
// not lost with the directory.
func TestAFileThatComesLate(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, func(o *volume.Options) { o.Grace = 0 })
			put(t, v, map[string]string{"conf.d/a": "1"})
			old, err := os.OpenRoot(filepath.Join(root, "conf.d"))
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			put(t, v, map[string]string{"conf.d/a": "2"})
			if err := old.WriteFile("late", []byte("late"), 0o644); err != nil {
				t.Fatal(err)
			}
			prune(t, v)
			if got := read(t, filepath.Join(root, "conf.d", "late")); got != "late" {
				t.Errorf("conf.d/late is %q", got)
			}
		})
	}
}

// With exchange the root itself is a generation: what the application writes there
// stays as well.
func TestFilesOfTheApplicationInAnExchangedRoot(t *testing.T) {
	v, root := open(t, volume.Exchange, func(o *volume.Options) { o.Grace = 0 })
	put(t, v, map[string]string{"a": "1"})
	write(t, filepath.Join(root, "lock"), "application's own")
	mkdir(t, filepath.Join(root, "empty"))
	old, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	put(t, v, map[string]string{"a": "2"})
	if err := old.WriteFile("late", []byte("late"), 0o644); err != nil {
		t.Fatal(err)
	}
	prune(t, v)
	wantVisible(t, root, map[string]string{"a": "2", "lock": "application's own", "late": "late"})
	if info, err := os.Stat(filepath.Join(root, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty directory: %v", err)
	}
}

// A directory of another user cannot be moved. With links the sets go on, the
// application keeps it, and so does a restart and the way back.
func TestADirectoryOfAnotherUserStopsNoSet(t *testing.T) {
	needsRoot(t)
	grace := func(o *volume.Options) { o.Grace = 0 }
	v, root := open(t, volume.Links, grace)
	first := put(t, v, map[string]string{"conf.d/a": "1"})
	cache := filepath.Join(root, "conf.d", "cache")
	mkdir(t, cache)
	write(t, filepath.Join(cache, "entry"), "cached")
	if err := os.Chown(cache, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	withCapability(t, unix.CAP_KILL, func() {
		for _, step := range []string{"2", "3"} {
			put(t, v, map[string]string{"conf.d/a": step})
			prune(t, v)
			wantVisible(t, root, map[string]string{"conf.d/a": step, "conf.d/cache/entry": "cached"})
		}
		v.Close()
		v = reopen(t, root, volume.Links, grace)
		publishAgain(t, v, first, map[string]string{"conf.d/a": "1"})
		prune(t, v)
		wantVisible(t, root, map[string]string{"conf.d/a": "1", "conf.d/cache/entry": "cached"})
		put(t, v, map[string]string{"conf.d/a": "4"})
		prune(t, v)
		wantVisible(t, root, map[string]string{"conf.d/a": "4", "conf.d/cache/entry": "cached"})
	})
	if err := os.RemoveAll(filepath.Join(root, "..gen-"+first, "conf.d", "cache")); err != nil {
		t.Fatal(err)
	}
	prune(t, v)
	if v.Has(first) {
		t.Error("the first set stays although the application has nothing in it any more")
	}
}

// With exchange no link can stand in for it: the set is refused, and nothing
// vanishes.
func TestADirectoryOfAnotherUserInAnExchangedRoot(t *testing.T) {
	needsRoot(t)
	v, root := open(t, volume.Exchange, nil)
	put(t, v, map[string]string{"a": "1"})
	mkdir(t, filepath.Join(root, "cache"))
	write(t, filepath.Join(root, "cache", "entry"), "cached")
	if err := os.Chown(filepath.Join(root, "cache"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	withCapability(t, unix.CAP_KILL, func() {
		err := v.Publish(stage(t, v, map[string]string{"a": "2"}))
		if err == nil || !strings.Contains(err.Error(), "isn't allowed to move this directory: remove it, make it writable, or use the layout links") {
			t.Errorf("error %v", err)
		}
	})
	wantVisible(t, root, map[string]string{"a": "1", "cache/entry": "cached"})
}

// A generation that holds something that cannot be kept stays, and keeps nothing
// else from being removed.
func TestALeftOverKeepsNoOtherFromBeingRemoved(t *testing.T) {
	v, root := open(t, volume.Links, func(o *volume.Options) { o.Grace = 0 })
	ids := []string{put(t, v, map[string]string{"conf.d/a": "1"}), put(t, v, map[string]string{"conf.d/a": "2"}), put(t, v, map[string]string{"conf.d/a": "3"})}
	slices.Sort(ids) // as they are found
	put(t, v, map[string]string{"conf.d/a": "4", "conf.d/late": "theirs"})
	write(t, filepath.Join(root, "..gen-"+ids[0], "conf.d", "late"), "mine")
	_, err := v.Prune(nil, nothingLive)
	if err == nil || !strings.Contains(err.Error(), "generation "+ids[0]+" is left over") {
		t.Errorf("error %v", err)
	}
	if !v.Has(ids[0]) || v.Has(ids[1]) || v.Has(ids[2]) {
		t.Errorf("left over: %v %v %v", v.Has(ids[0]), v.Has(ids[1]), v.Has(ids[2]))
	}
	objects, err := os.ReadDir(filepath.Join(volume.StateDir(root, volume.Links), "objects"))
	if err != nil || len(objects) > 0 {
		t.Errorf("contents that nobody needs stay: %v (%v)", objects, err)
	}
}

func publishAgain(t *testing.T, v *volume.Volume, id string, files map[string]string) {
	t.Helper()
	if !v.Has(id) {
		stage(t, v, files)
	}
	if err := v.Publish(id); err != nil {
		t.Fatal(err)
	}
}

func prune(t *testing.T, v *volume.Volume) {
	t.Helper()
	if _, err := v.Prune(nil, func() map[filemap.Digest]bool { return nil }); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		return "ERROR " + err.Error()
	}
	return string(raw)
}
