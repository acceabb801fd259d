package volume_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

func TestModesAndOwnerAreSetBeforePublishing(t *testing.T) {
	needsRoot(t)
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
	needsRoot(t)
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
