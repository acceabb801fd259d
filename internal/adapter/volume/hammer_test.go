package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

const hammerUpdates = 10000

// A reader that opens the directory once and reads both files of a set from it
// must get both of the same generation, whole, however fast sets change.
func TestReaderNeverSeesATornMissingOrMixedSet(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			root := filepath.Join(memoryDir(t), "config")
			v := reopen(t, root, layout, func(o *volume.Options) { o.Grace = 0 })
			publishPair(t, v, 0)
			stop := make(chan struct{})
			var readers sync.WaitGroup
			var reads int
			// Old sets go between two reads: how long a slow reader has is the
			// matter of the grace, and another test's.
			var open sync.RWMutex
			readers.Go(func() { reads = hammer(t, root, layout, &open, stop) })
			for n := 1; n <= hammerUpdates; n++ {
				publishPair(t, v, n)
				if n%100 == 0 {
					open.Lock()
					_, err := v.Prune(nil, nothingLive)
					open.Unlock()
					if err != nil {
						t.Error(err)
					}
				}
			}
			close(stop)
			readers.Wait()
			t.Logf("%d updates, %d reads of both files", hammerUpdates, reads)
			if reads < 1000 {
				t.Errorf("only %d reads: this proves nothing", reads)
			}
		})
	}
}

// memoryDir is a directory in memory, as an emptyDir with medium Memory is: the
// disk would only slow the writer down.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lockstep-hammer-") //nolint:usetesting // t.TempDir is on the disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// publishPair writes two long files that name the same number on every line.
func publishPair(t *testing.T, v *volume.Volume, n int) {
	t.Helper()
	var tree filemap.Tree
	for _, name := range []string{"a.conf", "b.conf"} {
		digest, err := v.Keep([]byte(strings.Repeat(name+" "+strconv.Itoa(n)+"\n", 200)))
		if err != nil {
			t.Fatal(err)
		}
		tree.Files = append(tree.Files, filemap.File{Path: name, Digest: digest})
		v.Unpin([]filemap.Entry{{Digest: digest}})
	}
	id := strconv.Itoa(n)
	if _, err := v.Stage(id, tree); err != nil {
		t.Fatal(err)
	}
	if err := v.Publish(id); err != nil {
		t.Fatal(err)
	}
}

func hammer(t *testing.T, root string, layout volume.Layout, open *sync.RWMutex, stop <-chan struct{}) int {
	t.Helper()
	for reads := 0; ; reads++ {
		select {
		case <-stop:
			return reads
		default:
		}
		open.RLock()
		err := errors.Join(readPair(root, layout), readSingle(filepath.Join(root, "a.conf")))
		open.RUnlock()
		if err != nil {
			t.Error(err)
			return reads
		}
	}
}

// readPair resolves the directory once, as an application should.
func readPair(root string, layout volume.Layout) error {
	if layout == volume.Links {
		root = filepath.Join(root, "..data")
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	a, errA := dir.ReadFile("a.conf")
	b, errB := dir.ReadFile("b.conf")
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if strings.ReplaceAll(string(a), "a.conf", "b.conf") != string(b) {
		return errors.New("the two files are of different generations")
	}
	return whole(a)
}

// readSingle goes by the visible path, as most applications do.
func readSingle(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return whole(content)
}

func whole(content []byte) error {
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if len(lines) != 200 || lines[0] != lines[199] {
		return errors.New("a file is torn")
	}
	return nil
}
