package volume_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
)

// walked is what a program finds that follows no links and skips names that
// begin with two dots, as Grafana does.
func walked(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p != root && strings.HasPrefix(d.Name(), "..") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		name, err := filepath.Rel(root, p)
		if err == nil && d.Type().IsRegular() {
			found[name] = read(t, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantWalked(t *testing.T, root string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, walked(t, root)); diff != "" {
		t.Errorf("a walk finds: -want +got\n%s", diff)
	}
}

// Directories are real, in a root that cannot be exchanged: what a walk finds is
// what was published, and what it does not find was removed.
func TestFilesCanBeWalked(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	first := map[string]string{"top.json": "1", "team/a/one.json": "1", "team/b/two.json": "1", "becomes": "a file", "was/a": "directory"}
	id := put(t, v, first)
	wantWalked(t, root, first)
	before, err := os.Stat(filepath.Join(root, "team/a/one.json"))
	if err != nil {
		t.Fatal(err)
	}

	second := map[string]string{"top.json": "2", "team/a/one.json": "1", "becomes/a": "directory", "was": "a file"}
	put(t, v, second)
	wantWalked(t, root, second)
	if _, err := os.Stat(filepath.Join(root, "team/b")); !os.IsNotExist(err) {
		t.Errorf("the empty directory stays: %v", err)
	}
	if after, err := os.Stat(filepath.Join(root, "team/a/one.json")); err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("a file that did not change was replaced (%v)", err)
	}
	if err := v.Publish(id); err != nil {
		t.Fatal(err)
	}
	wantWalked(t, root, first)
}

// What somebody else wrote stays, also in a published directory, and is in the
// way of a file of its name.
func TestFilesLeaveOthersAlone(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	put(t, v, map[string]string{"team/a.json": "1"})
	write(t, filepath.Join(root, "team", "mine"), "mine")
	write(t, filepath.Join(root, "own"), "own")
	put(t, v, map[string]string{"b.json": "1"})
	wantWalked(t, root, map[string]string{"b.json": "1", "team/mine": "mine", "own": "own"})
	for _, files := range []map[string]string{{"own": "theirs"}, {"team": "theirs"}, {"own/x": "theirs"}, {"team/mine": "theirs"}} {
		err := v.Publish(stage(t, v, files))
		if err == nil || !strings.Contains(err.Error(), "exists, and this agent didn't write it") {
			t.Errorf("%v: error %v", files, err)
		}
	}
	wantWalked(t, root, map[string]string{"b.json": "1", "team/mine": "mine", "own": "own"})
}

// An agent that was killed between two files goes on where it was.
func TestFilesGoOnAfterAKill(t *testing.T) {
	first := map[string]string{"a/1": "old", "a/2": "old", "gone": "old"}
	second := map[string]string{"a/1": "new", "a/2": "new", "b/3": "new"}
	for name, done := range map[string]func(root, generation string) error{
		"before the first": func(string, string) error { return nil },
		"after one": func(root, generation string) error {
			return os.Rename(filepath.Join(generation, "a", "1"), filepath.Join(root, "a", "1"))
		},
		"before the old ones went": func(root, generation string) error {
			return os.CopyFS(root, skipExisting{os.DirFS(generation), root})
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, root := open(t, volume.Files, nil)
			put(t, v, first)
			id := stage(t, v, second)
			v.Close()
			generation := filepath.Join(root, "..gen-"+id)
			keepCopy := t.TempDir()
			if err := os.CopyFS(keepCopy, os.DirFS(generation)); err != nil {
				t.Fatal(err)
			}
			if err := done(root, keepCopy); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, "..lockstep", "publishing"), id)
			again := reopen(t, root, volume.Files, nil)
			wantWalked(t, root, second)
			if current, err := again.Current(); err != nil || current != id {
				t.Errorf("current is %q (%v)", current, err)
			}
		})
	}
}

// What is in the way of a set that a killed agent began keeps no agent from
// starting, is not overwritten, and the previous set is restored.
func TestFilesStartAlthoughSomethingIsInTheWay(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	first := put(t, v, map[string]string{"a": "old", "gone": "old"})
	second := stage(t, v, map[string]string{"a": "new", "b": "new", "z": "new"})
	v.Close()
	write(t, filepath.Join(root, "..lockstep", "publishing"), second)
	if err := os.Link(filepath.Join(root, "..gen-"+second, "b"), filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "z"), "mine")
	v = reopen(t, root, volume.Files, nil)
	prune(t, v)
	wantWalked(t, root, map[string]string{"a": "old", "gone": "old", "z": "mine"})
	if current, err := v.Current(); err != nil || current != first {
		t.Errorf("current is %q (%v), want %q", current, err, first)
	}
	put(t, v, map[string]string{"a": "third"})
	wantWalked(t, root, map[string]string{"a": "third", "z": "mine"})
}

// A set that fails in the middle leaves the one before, so that going back to its
// content needs nothing.
func TestFilesThatFailInTheMiddle(t *testing.T) {
	v, root := open(t, volume.Files, nil)
	files := map[string]string{"a": "old", "gone": "old"}
	first := put(t, v, files)
	second := stage(t, v, map[string]string{"a": "new", "b": "new", "z": "new"})
	if err := os.Remove(filepath.Join(root, "..gen-"+second, "z")); err != nil {
		t.Fatal(err)
	}
	if err := v.Publish(second); err == nil || !strings.Contains(err.Error(), "file z") {
		t.Errorf("error %v", err)
	}
	wantWalked(t, root, files)
	if current, err := v.Current(); err != nil || current != first {
		t.Errorf("current is %q (%v)", current, err)
	}
	put(t, v, map[string]string{"c": "third"})
	wantWalked(t, root, map[string]string{"c": "third"})
}

// skipExisting is a tree without the files that are in place: copying refuses
// those.
type skipExisting struct {
	fs.FS

	root string
}

// Open hides nothing; ReadDir does.
func (s skipExisting) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	var missing []fs.DirEntry
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(s.root, name, e.Name())); err != nil || e.IsDir() {
			missing = append(missing, e)
		}
	}
	return missing, err
}

// A stricter mode holds for directories that are there already, as far as they are
// the agent's own.
func TestFilesInDirectoriesOfAnEarlierMode(t *testing.T) {
	needsRoot(t)
	v, root := open(t, volume.Files, nil)
	mkdir(t, filepath.Join(root, "theirs"))
	if err := os.Chown(filepath.Join(root, "theirs"), 12345, -1); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"d/deep/a": "1", "theirs/b": "1"}
	put(t, v, files)
	wantMode(t, filepath.Join(root, "d"), 0o755)
	v.Close()
	v = reopen(t, root, volume.Files, func(o *volume.Options) { o.DirMode, o.GID = 0o750, 54321 })
	tree := keep(t, v, files)
	id := tree.ID(nil, "0750") // modes are part of the name
	if _, err := v.Stage(id, tree); err != nil {
		t.Fatal(err)
	}
	if err := v.Publish(id); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"d", "d/deep"} {
		wantMode(t, filepath.Join(root, dir), 0o750)
		wantOwner(t, filepath.Join(root, dir), 0, 54321)
	}
	wantMode(t, filepath.Join(root, "theirs"), 0o755)
}

// A link in the place of a directory is in the way of the files below it and of no
// others. Nothing is written or removed through it, and it is never replaced.
func TestALinkInThePlaceOfADirectory(t *testing.T) {
	v, root := open(t, volume.Files, overwrite)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "a"), "outside")
	mkdir(t, filepath.Join(root, "other"))
	write(t, filepath.Join(root, "other", "a"), "mine")
	files := map[string]string{"team/a": "1", "b": "1"}
	for name, target := range map[string]string{"out of the root": outside, "inside": "other"} {
		link := filepath.Join(root, "team")
		mustLink(t, target, link)
		tree := keep(t, v, files)
		found := v.Obstacles(tree)
		if len(found) != 1 || !strings.Contains(found["team/a"].Error(), "team is a link, and files go into real directories") {
			t.Errorf("%s: obstacles %v", name, found)
		}
		if err := v.Publish(stage(t, v, files)); err == nil || !strings.Contains(err.Error(), "team is a link") {
			t.Errorf("%s: error %v", name, err)
		}
		put(t, v, map[string]string{"b": name})
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		put(t, v, files)

		if err := os.RemoveAll(link); err != nil {
			t.Fatal(err)
		}
		mustLink(t, target, link)
		put(t, v, map[string]string{"b": "3"})
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := read(t, filepath.Join(outside, "a")), read(t, filepath.Join(root, "other", "a")); a != "outside" || b != "mine" {
		t.Errorf("files behind the links are %q and %q", a, b)
	}
}

// A root that an agent with links has filled is taken over.
func TestFilesTakeOverLinks(t *testing.T) {
	v, root := open(t, volume.Links, nil)
	put(t, v, map[string]string{"top.json": "1", "team/a.json": "1", "gone.json": "1"})
	v.Close()
	v = reopen(t, root, volume.Files, nil)
	put(t, v, map[string]string{"top.json": "1", "team/a.json": "1"})
	wantWalked(t, root, map[string]string{"top.json": "1", "team/a.json": "1"})
	for _, name := range []string{"gone.json", "..data"} {
		if _, err := os.Lstat(filepath.Join(root, name)); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", name, err)
		}
	}
}

// No reader ever sees half a file, nor misses one that both sets have.
func TestFilesChangeInOneStepEach(t *testing.T) {
	root := filepath.Join(memoryDir(t), "config")
	v := reopen(t, root, volume.Files, nil)
	sets := []map[string]string{{"team/a": strings.Repeat("1", 5000), "x": "1"}, {"team/a": strings.Repeat("2", 5000), "y": "1"}}
	ids := []string{put(t, v, sets[0]), put(t, v, sets[1])}
	stop := make(chan struct{})
	torn := make(chan string, 1)
	var reads atomic.Int64
	go func() {
		defer close(torn)
		for {
			select {
			case <-stop:
				return
			default:
			}
			raw, err := os.ReadFile(filepath.Join(root, "team", "a"))
			if text := string(raw); err != nil || (text != sets[0]["team/a"] && text != sets[1]["team/a"]) {
				torn <- fmt.Sprintf("a reader got %d bytes that begin with %q, error %v", len(text), text[:min(10, len(text))], err)
				return
			}
			reads.Add(1)
		}
	}()
	for i := 0; len(torn) == 0 && (i < hammerUpdates || reads.Load() < hammerReads); i++ {
		if err := v.Publish(ids[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if what, ok := <-torn; ok {
		t.Error(what)
	}
}
