package plainfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// returns fails the test when a call waits for a writer of a pipe.
func returns(t *testing.T, what string, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatalf("%s waits for a writer", what)
		return nil
	}
}

// Whatever is in the place of a file or a directory, nothing waits for it, and the error names
// the path.
func TestAPipeIsRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for what, call := range map[string]func() error{
		"Open":       func() error { _, err := plainfile.Open(pipe); return err },
		"OpenIn":     func() error { _, err := plainfile.OpenIn(root, "pipe"); return err },
		"Read":       func() error { _, err := plainfile.Read(pipe, plainfile.Small); return err },
		"ReadIn":     func() error { _, err := plainfile.ReadIn(root, "pipe", plainfile.Small); return err },
		"OpenDir":    func() error { _, err := plainfile.OpenDir(root, "pipe"); return err },
		"OpenRoot":   func() error { _, err := plainfile.OpenRoot(pipe); return err },
		"OpenRootIn": func() error { _, err := plainfile.OpenRootIn(root, "pipe"); return err },
		"ReadDir":    func() error { _, err := fs.ReadDir(plainfile.Dirs(root), "pipe"); return err },
	} {
		err := returns(t, what, call)
		if err == nil || !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: error %v, want one that names the pipe", what, err)
		}
		if refused, file := errors.AsType[*plainfile.KindError](err); file && refused.Error() != pipe+" is a named pipe, not a regular file" {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if _, err := plainfile.Read("/dev/zero", plainfile.Small); err == nil || !strings.Contains(err.Error(), "/dev/zero is a device") {
		t.Errorf("a device: %v", err)
	}
}

func TestFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.Symlink("sub", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	root, err := plainfile.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if raw, err := plainfile.ReadIn(root, "a", 5); err != nil || string(raw) != "12345" {
		t.Errorf("read %q, %v", raw, err)
	}
	if _, err := plainfile.ReadIn(root, "a", 4); err == nil || !strings.Contains(err.Error(), "is larger than 4 bytes") {
		t.Errorf("beyond the limit: %v", err)
	}
	var names []string
	err = fs.WalkDir(plainfile.Dirs(root), ".", func(p string, _ fs.DirEntry, err error) error {
		names = append(names, p)
		return err
	})
	if got := strings.Join(names, " "); err != nil || got != ". a b link sub" {
		t.Errorf("walked %s, %v", got, err)
	}
	linked, err := plainfile.OpenRootIn(root, "link")
	if err != nil {
		t.Fatal(err)
	}
	_ = linked.Close()
}
