package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// A test ends after both of these: a writer or a reader that gets little time proves nothing.
const hammerUpdates, hammerReads = 1000, 1000

// A reader that opens the directory once and reads both files of a set from it
// must get both of the same generation, whole, however fast sets change.
func TestReaderNeverSeesATornMissingOrMixedSet(t *testing.T) {
	for _, layout := range wholeLayouts {
		t.Run(string(layout), func(t *testing.T) {
			root := filepath.Join(memoryDir(t), "config")
			v := reopen(t, root, layout, func(o *volume.Options) { o.Grace = 0 })
			publishPair(t, v, 0)
			r := &reader{root: root, layout: layout, stop: make(chan struct{})}
			var readers sync.WaitGroup
			readers.Go(func() { r.hammer(t) })
			updates := 0
			for n := 1; !t.Failed() && (n <= hammerUpdates || r.reads.Load() < hammerReads); n++ {
				updates = n
				publishPair(t, v, n)
				if n%100 == 0 {
					r.open.Lock()
					_, err := v.Prune(nil, nothingLive)
					r.open.Unlock()
					if err != nil {
						t.Error(err)
					}
				}
			}
			close(r.stop)
			readers.Wait()
			t.Logf("%d updates, %d reads of both files", updates, r.reads.Load())
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

// reader reads both files of a set, again and again.
type reader struct {
	root   string
	layout volume.Layout
	stop   chan struct{}
	reads  atomic.Int64
	// open is held during a read. Old sets go between two reads: how long a slow reader
	// has is the matter of the grace, and another test's.
	open sync.RWMutex
}

func (r *reader) hammer(t *testing.T) {
	t.Helper()
	for {
		select {
		case <-r.stop:
			return
		default:
		}
		r.open.RLock()
		err := errors.Join(readPair(r.root, r.layout), readSingle(filepath.Join(r.root, "a.conf")))
		r.open.RUnlock()
		if err != nil {
			t.Error(err)
			return
		}
		r.reads.Add(1)
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
