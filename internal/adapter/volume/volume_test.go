package volume_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

var (
	layouts = []volume.Layout{volume.Links, volume.Exchange, volume.Files}
	// wholeLayouts change the whole set in one step.
	wholeLayouts = []volume.Layout{volume.Links, volume.Exchange}
)

// open makes a volume in a fresh directory; change adjusts its options.
func open(t *testing.T, layout volume.Layout, change func(*volume.Options)) (*volume.Volume, string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "config")
	return reopen(t, root, layout, change), root
}

func reopen(t *testing.T, root string, layout volume.Layout, change func(*volume.Options)) *volume.Volume {
	t.Helper()
	opts := volume.DefaultOptions(root)
	opts.Layout = layout
	if change != nil {
		change(&opts)
	}
	v, err := volume.Open(opts, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// put keeps, stages and publishes one set of files and returns its name.
func put(t *testing.T, v *volume.Volume, files map[string]string) string {
	t.Helper()
	id := stage(t, v, files)
	if err := v.Publish(id); err != nil {
		t.Fatalf("publish %v: %v", files, err)
	}
	return id
}

func stage(t *testing.T, v *volume.Volume, files map[string]string) string {
	t.Helper()
	tree := keep(t, v, files)
	id := tree.ID(nil, "")
	if _, err := v.Stage(id, tree); err != nil {
		t.Fatal(err)
	}
	return id
}

func keep(t *testing.T, v *volume.Volume, files map[string]string) filemap.Tree {
	t.Helper()
	o := filemap.Object{Ref: filemap.Ref{Kind: filemap.Directory}}
	for name, content := range files {
		digest, err := v.Keep([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		o.Entries = append(o.Entries, filemap.Entry{Key: name, Digest: digest, Size: int64(len(content))})
	}
	tree, err := filemap.Plan([]filemap.Object{o}, filemap.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	v.Unpin(o.Entries)
	return tree
}

// visible reads what an application would find, without the agent's own names.
func visible(t *testing.T, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Fatalf("a reader finds a name that leads nowhere: %v", err)
			}
			if info.IsDir() {
				walk(name)
				continue
			}
			content, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = string(content)
		}
	}
	walk(".")
	return got
}

func wantVisible(t *testing.T, root string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, visible(t, root)); diff != "" {
		t.Errorf("visible files: -want +got\n%s", diff)
	}
}

func nothingLive() map[filemap.Digest]bool { return nil }

func TestPublishReplacesTheWholeSet(t *testing.T) {
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, nil)
			first := put(t, v, map[string]string{"a": "1", "gone": "x", "dir/b": "2", "dir/deep/c": "3"})
			wantVisible(t, root, map[string]string{"a": "1", "gone": "x", "dir/b": "2", "dir/deep/c": "3"})

			second := put(t, v, map[string]string{"a": "1", "dir/b": "changed", "new": "y"})
			wantVisible(t, root, map[string]string{"a": "1", "dir/b": "changed", "new": "y"})
			if current, err := v.Current(); err != nil || current != second {
				t.Errorf("current is %q (%v), want %q", current, err, second)
			}

			if err := v.Publish(first); err != nil {
				t.Fatalf("go back: %v", err)
			}
			wantVisible(t, root, map[string]string{"a": "1", "gone": "x", "dir/b": "2", "dir/deep/c": "3"})
		})
	}
}

func TestKeysRemovedWhileTheAgentWasAway(t *testing.T) {
	for _, layout := range layouts {
		t.Run(string(layout), func(t *testing.T) {
			v, root := open(t, layout, nil)
			put(t, v, map[string]string{"a": "1", "b": "2"})
			v.Close()
			v = reopen(t, root, layout, nil)
			put(t, v, map[string]string{"a": "1"})
			wantVisible(t, root, map[string]string{"a": "1"})
		})
	}
}

func TestForeignFilesAreNeverTouched(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	foreign := filepath.Join(root, "foreign.txt")
	write(t, foreign, "mine")
	put(t, v, map[string]string{"a": "1", "b": "2"})
	put(t, v, map[string]string{"b": "3"})
	wantVisible(t, root, map[string]string{"foreign.txt": "mine", "b": "3"})

	id := stage(t, v, map[string]string{"foreign.txt": "ours"})
	err := v.Publish(id)
	if err == nil || !strings.Contains(err.Error(), "foreign.txt is there but was not written by this agent") {
		t.Errorf("publishing over a foreign file: %v", err)
	}
	wantVisible(t, root, map[string]string{"foreign.txt": "mine", "b": "3"})
}

// names are all entries of the root that are not the agent's own.
func names(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") {
			all = append(all, e.Name())
		}
	}
	return all
}

// A set that cannot be published because of one name leaves no others behind.
func TestARefusedSetLeavesNoLinks(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	put(t, v, map[string]string{"a": "1"})
	write(t, filepath.Join(root, "z"), "mine")
	id := stage(t, v, map[string]string{"a": "2", "b": "2", "z": "2"})
	if err := v.Publish(id); err == nil || !strings.Contains(err.Error(), "z is there but was not written by this agent") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"a", "z"}, names(t, root)); diff != "" {
		t.Error(diff)
	}
}

// Links that a killed agent left behind lead nowhere and go at the next start,
// also when there is nothing new to publish.
func TestLeftoverLinksGo(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	put(t, v, map[string]string{"a": "1"})
	v.Close()
	mustLink(t, "..data/b", filepath.Join(root, "b"))
	mustLink(t, "elsewhere", filepath.Join(root, "foreign"))
	reopen(t, root, volume.Links, nil)
	if diff := cmp.Diff([]string{"a", "foreign"}, names(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestOverwriteTakesAPlainFileOver(t *testing.T) {
	v, root := open(t, volume.Links, func(o *volume.Options) { o.Overwrite = true })
	write(t, filepath.Join(root, "a"), "from the predecessor")
	put(t, v, map[string]string{"a": "1"})
	wantVisible(t, root, map[string]string{"a": "1"})
}

func overwrite(o *volume.Options) { o.Overwrite = true }

// A set that cannot be published has taken nothing over. Here a mount is in the
// way of the swap.
func TestOverwriteTakesNothingBeforeTheSwap(t *testing.T) {
	v, root := open(t, volume.Links, overwrite)
	put(t, v, map[string]string{"a": "1"})
	write(t, filepath.Join(root, "foreign"), "mine")
	id := stage(t, v, map[string]string{"a": "2", "b": "2", "foreign": "2"})
	obstacle := filepath.Join(root, "..data_tmp")
	mkdir(t, obstacle)
	inMountNamespace(t, func() {
		if err := unix.Mount("none", obstacle, "tmpfs", 0, ""); err != nil {
			t.Error(err)
			return
		}
		if err := v.Publish(id); err == nil {
			t.Error("published through a mount")
		}
	})
	wantVisible(t, root, map[string]string{"a": "1", "foreign": "mine"})
	if err := v.Publish(id); err != nil {
		t.Error(err)
	}
	wantVisible(t, root, map[string]string{"a": "2", "b": "2", "foreign": "2"})
}

// An agent that was killed right after the swap has left a foreign file where
// its own belongs, and may have left a name out. The next one ends it.
func TestOverwriteIsFinishedAfterAKill(t *testing.T) {
	v, root := open(t, volume.Links, overwrite)
	put(t, v, map[string]string{"a": "1", "b": "1"})
	v.Close()
	for _, name := range []string{"a", "b"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "a"), "foreign")
	reopen(t, root, volume.Links, overwrite)
	wantVisible(t, root, map[string]string{"a": "1", "b": "1"})
}

// A mount stays with its directory, so that no exchange can ever work. That is
// said at the start, for another file system and for a part of the same.
func TestExchangeRefusesAMountPoint(t *testing.T) {
	for name, mount := range map[string]func(root string) error{
		"another file system": func(root string) error { return unix.Mount("none", root, "tmpfs", 0, "") },
		"the same":            func(root string) error { return unix.Mount(root, root, "", unix.MS_BIND, "") },
	} {
		root := filepath.Join(t.TempDir(), "config")
		mkdir(t, root)
		inMountNamespace(t, func() {
			if err := mount(root); err != nil {
				t.Error(err)
				return
			}
			opts := volume.DefaultOptions(root)
			opts.Layout = volume.Exchange
			if v, err := volume.Open(opts, time.Now); err == nil || !strings.Contains(err.Error(), "a mount cannot be exchanged: give it a root below") {
				t.Errorf("%s: error %v", name, err)
				if v != nil {
					v.Close()
				}
			}
		})
	}
}

func TestExchangeTakesAnEmptyDirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	v := reopen(t, root, volume.Exchange, nil)
	put(t, v, map[string]string{"a": "1"})
	put(t, v, map[string]string{"a": "2"})
	wantVisible(t, root, map[string]string{"a": "2"})
	if info, err := os.Lstat(filepath.Join(root, "a")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file is %v (%v), want a regular one", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		layout  volume.Layout
		prepare func(root string)
		want    string
	}{
		"kubelet's volume": {
			reason: "the kubelet's own ..data must not be fought over", layout: volume.Links,
			prepare: func(root string) { mustLink(t, "..2026_11_15", filepath.Join(root, "..data")) },
			want:    "..data is there but was not made by this agent",
		},
		"second agent": {
			reason: "two agents would swap each other's sets away", layout: volume.Links,
			prepare: func(root string) { reopen(t, root, volume.Links, nil) }, want: "another agent already publishes here",
		},
		"foreign directory": {
			reason: "an exchange would move foreign files out of sight", layout: volume.Exchange,
			prepare: func(root string) { write(t, filepath.Join(root, "x"), "y") }, want: "holds files that this agent did not write",
		},
		"file": {
			reason: "a root that is no directory cannot be used", layout: volume.Links,
			prepare: func(root string) {
				if err := errors.Join(os.Remove(root), os.WriteFile(root, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}, want: "not a directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "config")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			c.prepare(root)
			opts := volume.DefaultOptions(root)
			opts.Layout = c.layout
			v, err := volume.Open(opts, time.Now)
			if err == nil {
				v.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v lacks %q", c.reason, err, c.want)
			}
		})
	}
}

func TestOptionsValidateJoins(t *testing.T) {
	err := volume.Options{Layout: "tree", FileMode: 0o7000, DirMode: 0o600, Grace: -1, UID: 12345, GID: -2}.Validate()
	for _, want := range []string{"the root directory is missing", `layout "tree"`, "file mode", "directory mode", "grace", "owner -2", "directories stay the agent's own"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

func TestModesAndOwnerAreSetBeforePublishing(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // a strict umask must not matter
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			v, _ := open(t, layout, func(o *volume.Options) { o.FileMode, o.DirMode, o.UID, o.GID = 0o640, 0o750, 12345, 54321 })
			tree := keep(t, v, map[string]string{"d/a": "1"})
			dir, err := v.Stage(tree.ID(nil, ""), tree)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]struct {
				mode fs.FileMode
				uid  uint32
			}{"d/a": {0o640, 12345}, "d": {0o750, 0}, ".": {0o750, 0}} {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				stat := info.Sys().(*syscall.Stat_t)
				if info.Mode().Perm() != want.mode || stat.Uid != want.uid || stat.Gid != 54321 {
					t.Errorf("%s has mode %o, owner %d:%d before publishing", name, info.Mode().Perm(), stat.Uid, stat.Gid)
				}
			}
		})
	}
}

// The capability CHOWN is enough for files of another owner: to write them, to
// use their contents again, also after a restart, and to remove them.
func TestFilesAreGivenAwayWithOneCapability(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			opts := volume.DefaultOptions(filepath.Join(t.TempDir(), "config"))
			opts.Layout, opts.Grace, opts.UID, opts.GID, opts.FileMode = layout, 0, 12345, 54321, 0o600
			withCapability(t, unix.CAP_CHOWN, func() {
				for _, b := range []string{"1", "2", "3"} {
					if err := publishOnce(t, opts, map[string]string{"dir/a": "same", "dir/b": b}); err != nil {
						t.Error(err)
					}
				}
			})
			wantVisible(t, opts.Root, map[string]string{"dir/a": "same", "dir/b": "3"})
			wantOwner(t, filepath.Join(opts.Root, "dir", "a"), 12345, 54321)
		})
	}
}

// publishOnce is the whole life of an agent that publishes one set.
func publishOnce(t *testing.T, opts volume.Options, files map[string]string) error {
	t.Helper()
	v, err := volume.Open(opts, time.Now)
	if err != nil {
		return err
	}
	defer v.Close()
	tree := filemap.Tree{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		digest, err := v.Keep([]byte(files[name]))
		if err != nil {
			return err
		}
		tree.Files = append(tree.Files, filemap.File{Path: name, Digest: digest})
	}
	if _, err := v.Stage(tree.ID(nil, ""), tree); err != nil {
		return err
	}
	if err := v.Publish(tree.ID(nil, "")); err != nil {
		return err
	}
	_, err = v.Prune(nil, nothingLive)
	return err
}

func wantOwner(t *testing.T, name string, uid, gid uint32) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != uid || stat.Gid != gid {
		t.Errorf("%s belongs to %d:%d", name, stat.Uid, stat.Gid)
	}
}

// An application in another container may write into the shared volume. Links
// that it plants must not lead the agent out of the root.
func TestPlantedLinksDoNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "victim"), "untouched")
	for name, plant := range map[string]func(root string){
		"state directory": func(root string) { mustLink(t, outside, filepath.Join(root, "..lockstep")) },
		"object store": func(root string) {
			if err := os.MkdirAll(filepath.Join(root, "..lockstep"), 0o755); err != nil {
				t.Fatal(err)
			}
			mustLink(t, outside, filepath.Join(root, "..lockstep", "objects"))
		},
		"visible name":        func(root string) { mustLink(t, filepath.Join(outside, "victim"), filepath.Join(root, "a")) },
		"name for the swap":   func(root string) { mustLink(t, outside, filepath.Join(root, "..data_tmp")) },
		"directory of a file": func(root string) { mustLink(t, outside, filepath.Join(root, "d")) },
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "config")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			plant(root)
			publishAnyway(root, map[string]string{"a": "evil", "d/victim": "evil"})
			entries, err := os.ReadDir(outside)
			content, _ := os.ReadFile(filepath.Join(outside, "victim"))
			if err != nil || len(entries) != 1 || string(content) != "untouched" {
				t.Errorf("outside the root there is now %v, victim %q", entries, content)
			}
		})
	}
}

// publishAnyway goes on as far as it gets; errors are as good as success here.
func publishAnyway(root string, files map[string]string) {
	opts := volume.DefaultOptions(root)
	opts.Overwrite = true
	v, err := volume.Open(opts, time.Now)
	if err != nil {
		return
	}
	defer v.Close()
	var tree filemap.Tree
	for name, content := range files {
		digest, _ := v.Keep([]byte(content))
		tree.Files = append(tree.Files, filemap.File{Path: name, Digest: digest})
	}
	if _, err := v.Stage("0", tree); err == nil {
		_ = v.Publish("0")
	}
}

func TestPathsThatLeaveAreRefusedByTheVolumeItself(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	digest, err := v.Keep([]byte("evil"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"../../evil", "/evil", "a/../../../evil"} {
		if dir, err := v.Stage("x", filemap.Tree{Files: []filemap.File{{Path: p, Digest: digest}}}); err == nil {
			if _, err := os.Stat(filepath.Join(filepath.Dir(root), "evil")); err == nil {
				t.Errorf("%q was written outside of %s", p, dir)
			}
		}
	}
	if _, err := os.Stat("/evil"); err == nil {
		t.Error("/evil was written")
	}
}

func TestUnwritableRootSaysWhatToDo(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("this test changes its user id: run it as root")
	}
	parent := t.TempDir()
	root := filepath.Join(parent, "config")
	if err := errors.Join(os.Chmod(filepath.Dir(parent), 0o755), os.Mkdir(root, 0o555)); err != nil {
		t.Fatal(err)
	}
	asUser(t, 12345, func() {
		_, err := volume.Open(volume.DefaultOptions(root), time.Now)
		if err == nil || !strings.Contains(err.Error(), "cannot write there; set fsGroup or runAsUser") {
			t.Errorf("error %v", err)
		}
	})
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustLink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
