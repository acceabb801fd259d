package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

func TestForeignFilesAreNeverTouched(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	foreign := filepath.Join(root, "foreign.txt")
	write(t, foreign, "mine")
	put(t, v, map[string]string{"a": "1", "b": "2"})
	put(t, v, map[string]string{"b": "3"})
	wantVisible(t, root, map[string]string{"foreign.txt": "mine", "b": "3"})

	id := stage(t, v, map[string]string{"foreign.txt": "ours"})
	err := v.Publish(id)
	if err == nil || !strings.Contains(err.Error(), "foreign.txt exists, and this agent didn't write it") {
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
	if err := v.Publish(id); err == nil || !strings.Contains(err.Error(), "z exists, and this agent didn't write it") {
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
	needsRoot(t)
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
