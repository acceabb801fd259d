package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// withoutWaiting fails the test when a call waits for a writer of a pipe.
func withoutWaiting(t *testing.T, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("it waits for a writer of the pipe")
		return nil
	}
}

func mkfifo(t *testing.T, name string) string {
	t.Helper()
	if err := errors.Join(os.RemoveAll(name), unix.Mkfifo(name, 0o644)); err != nil {
		t.Fatal(err)
	}
	return name
}

// A pipe in a directory is reported with its name; the files beside it are read.
func TestScanReportsAPipe(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "1")
	mkfifo(t, filepath.Join(dir, "pipe"))
	var got filemap.Object
	err := withoutWaiting(t, func() (err error) {
		got, _, err = volume.NewDirectory(dir, volume.HashOnly{}).Scan()
		return err
	})
	if err != nil || len(got.Entries) != 2 {
		t.Fatalf("entries %v, error %v", got.Entries, err)
	}
	tree, err := filemap.Plan([]filemap.Object{got}, filemap.Rules{})
	if err != nil || len(tree.Files) != 1 || tree.LeftOut == nil || !strings.Contains(tree.LeftOut.Error(), `"pipe" of directory `+dir+": it is a named pipe") {
		t.Errorf("files %v, left out %v, error %v", tree.Files, tree.LeftOut, err)
	}
}

// Pipes in the places that the agent reads stop neither its start nor a publish: an error names
// the path, or the agent replaces them.
func TestPipesInTheRoot(t *testing.T) {
	everywhere := []string{"status.json", "key", "finished", "finished/*", "objects", "objects/*", "seals/*"}
	for layout, own := range map[volume.Layout][]string{
		volume.Links: {"../..gen-*", "../..data"}, volume.Exchange: {"gen-*.json"}, volume.Files: {"current", "../..gen-*"},
	} {
		for _, name := range slices.Concat(everywhere, own) {
			t.Run(string(layout)+" "+name, func(t *testing.T) {
				root := filepath.Join(t.TempDir(), "config")
				opts := volume.DefaultOptions(root)
				opts.Layout, opts.Overwrite = layout, true
				if err := use(opts); err != nil {
					t.Fatal(err)
				}
				places, err := filepath.Glob(filepath.Join(volume.StateDir(root, layout), name))
				if err != nil || len(places) == 0 {
					t.Fatalf("there is no %s: %v", name, err)
				}
				pipe := mkfifo(t, places[0])
				err = withoutWaiting(t, func() error { return use(opts) })
				if err != nil && !strings.Contains(err.Error(), filepath.Base(pipe)) && !strings.Contains(err.Error(), "generation") {
					t.Errorf("the error does not name the place: %v", err)
				}
			})
		}
	}
}

// use does everything that an agent does with a volume.
func use(opts volume.Options) error {
	v, err := volume.Open(opts, time.Now)
	if err != nil {
		return err
	}
	defer v.Close()
	var failures []error
	for _, name := range []string{"status.json", "key"} {
		_, err := v.ReadState(name)
		failures = append(failures, err, v.WriteState(name, []byte("{}")))
	}
	digest, err := v.Keep([]byte("content"))
	tree := filemap.Tree{Files: []filemap.File{{Path: "d/a", Digest: digest}}}
	id := tree.ID(nil, "")
	_, staged := v.Stage(id, tree)
	v.Obstacles(tree)
	failures = append(failures, err, staged, v.Publish(id), v.Verify(id))
	_, err = v.Prune(nil, func() map[filemap.Digest]bool { return map[filemap.Digest]bool{digest: true} })
	return errors.Join(append(failures, err)...)
}
