package volume_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

func TestState(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	if raw, err := v.ReadState("status.json"); err != nil || raw != nil {
		t.Errorf("missing state: %q, %v", raw, err)
	}
	if err := v.WriteState("status.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(volume.StateDir(root, volume.Links), "status.json"))
	if err != nil || !bytes.Equal(raw, []byte("{}")) {
		t.Errorf("state file: %q, %v", raw, err)
	}
}

// Who may not read the files learns nothing beside them either: not the key
// against which names could be tested, and not what a checker printed.
func TestStateIsNoMoreReadableThanTheFiles(t *testing.T) {
	for _, mode := range []fs.FileMode{0o644, 0o640, 0o400} {
		v, root := open(t, volume.Links, func(o *volume.Options) { o.FileMode = mode })
		if err := errors.Join(v.WriteState("key", []byte("k")), v.WriteState("status.json", []byte("{}"))); err != nil {
			t.Fatal(err)
		}
		wantMode(t, filepath.Join(root, "..lockstep", "key"), 0o600)
		wantMode(t, filepath.Join(root, "..lockstep", "status.json"), mode|0o600)
	}
}

// The group that may read the files may read the status as well, and not the key.
func TestTheGroupOfTheState(t *testing.T) {
	needsRoot(t)
	v, root := open(t, volume.Links, func(o *volume.Options) { o.FileMode, o.GID = 0o640, 54321 })
	if err := errors.Join(v.WriteState("key", []byte("k")), v.WriteState("status.json", []byte("{}"))); err != nil {
		t.Fatal(err)
	}
	wantMode(t, filepath.Join(root, "..lockstep", "status.json"), 0o640)
	wantOwner(t, filepath.Join(root, "..lockstep", "status.json"), 0, 54321)
	wantOwner(t, filepath.Join(root, "..lockstep", "key"), 0, 0)
}

// A volume that is mounted again may have given the key to a group, and the
// agent may have become another user of that group.
func TestAnOpenKeyIsHidden(t *testing.T) {
	needsRoot(t)
	root := filepath.Join(t.TempDir(), "config")
	state := filepath.Join(root, "..lockstep")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(state, "key")
	write(t, key, "secret")
	if err := os.Chown(key, 12345, -1); err != nil {
		t.Fatal(err)
	}
	withCapability(t, unix.CAP_KILL, func() {
		v := reopen(t, root, volume.Links, nil)
		if raw, err := v.ReadState("key"); err != nil || string(raw) != "secret" {
			t.Errorf("the key is %q now (%v)", raw, err)
		}
	})
	wantMode(t, key, 0o600)
}

// What another user left closed is a clear error.
func TestAnotherUsersState(t *testing.T) {
	needsRoot(t)
	v, root := open(t, volume.Links, nil)
	v.Close()
	for _, dir := range []string{filepath.Dir(filepath.Dir(root)), filepath.Dir(root)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	asUser(t, 12345, func() {
		if _, err := volume.Open(volume.DefaultOptions(root), time.Now); err == nil || !strings.Contains(err.Error(), "can't use the files of an agent that ran with another uid") {
			t.Errorf("error %v", err)
		}
	})
}

func wantMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("%s has mode %o, want %o", name, info.Mode().Perm(), want)
	}
}
