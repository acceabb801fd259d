package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// trees are the copies of a working tree in which breaks are made. They are always in the
// same place, because the Go build cache distinguishes packages by their directory: a copy
// with another name would compile everything again.
type trees struct {
	dir    string
	names  []string
	hash   string
	unlock func()
}

// newTrees makes the first copy. It waits until another run in the same checkout has ended.
func newTrees(ctx context.Context, root string, progress io.Writer) (*trees, error) {
	cache, err := program.Cache()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(root))
	t := &trees{dir: filepath.Join(cache, "breaks", hex.EncodeToString(sum[:])[:10])}
	waits := time.AfterFunc(time.Second, func() { fmt.Fprintln(progress, "waiting for another run in this checkout") })
	t.unlock, err = program.Lock(ctx, t.dir+".lock")
	waits.Stop()
	if err != nil {
		return nil, err
	}
	if t.names, err = tracked(ctx, root); err == nil {
		t.hash, err = copyTree(root, t.first(), t.names)
	}
	if err != nil {
		t.remove()
		return nil, err
	}
	return t, nil
}

func (t *trees) first() string { return filepath.Join(t.dir, "1") }

// of returns the tree of a worker. All are copies of the first, so changes in the working
// tree don't matter while breaks run.
func (t *trees) of(worker string) (string, error) {
	dir := filepath.Join(t.dir, worker)
	if dir == t.first() {
		return dir, nil
	}
	_, err := copyTree(t.first(), dir, t.names)
	return dir, err
}

func (t *trees) remove() {
	_ = os.RemoveAll(t.dir)
	t.unlock()
}
