package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

// A mount stays with its directory, so that no exchange can ever work. That is
// said at the start, for another file system and for a part of the same.
func TestExchangeRefusesAMountPoint(t *testing.T) {
	needsRoot(t)
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
			if v, err := volume.Open(opts, time.Now); err == nil || !strings.Contains(err.Error(), "a mount point cannot be exchanged: use a root below it") {
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
