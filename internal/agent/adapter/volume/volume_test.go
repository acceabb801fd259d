package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
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
			want:    "..data exists, and this agent didn't create it",
		},
		"second agent": {
			reason: "two agents would swap each other's sets away", layout: volume.Links,
			prepare: func(root string) { reopen(t, root, volume.Links, nil) }, want: "another agent already publishes here",
		},
		"foreign directory": {
			reason: "an exchange would move foreign files out of sight", layout: volume.Exchange,
			prepare: func(root string) { write(t, filepath.Join(root, "x"), "y") }, want: "contains files that this agent didn't write",
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
	for _, want := range []string{"the root directory is missing", `layout "tree"`, "file mode", "directory mode", "grace", "owner -2", "the agent stays the owner of directories"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
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
	needsRoot(t)
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
