// Package plainfile opens regular files and directories and refuses everything else. Other
// containers write into the volumes that the agent reads. A named pipe in the place of a file
// would block the agent forever, and a device could return bytes without end.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Open opens a regular file for reading. It never waits for a writer.
func Open(name string) (*os.File, error) {
	return regular(os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// OpenIn opens a regular file below a root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return regular(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// regular checks the open file itself, because its name may lead elsewhere by now.
func regular(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &KindError{Path: f.Name(), Mode: info.Mode()}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// KindError reports a path that isn't a regular file.
type KindError struct {
	Path string
	Mode fs.FileMode
}

// Error names the path and what is there.
func (e *KindError) Error() string {
	return fmt.Sprintf("%s is %s, not a regular file", e.Path, Kind(e.Mode))
}

// Kind describes the type of a file that isn't regular.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// Limits on files that are read into memory as a whole.
const (
	// Small is for credentials, certificates and PID files.
	Small = 1 << 20
	// Large is for the agent's own lists of files.
	Large = 64 << 20
)

// Read reads a regular file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// ReadIn reads a regular file of at most limit bytes below a root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

func readAll(f *os.File, limit int64) ([]byte, error) {
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", f.Name(), limit)
	}
	return raw, err
}

// OpenDir opens a directory below a root.
func OpenDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

// OpenRoot is os.OpenRoot. The slash makes the kernel refuse a named pipe instead of opening
// it.
func OpenRoot(name string) (*os.Root, error) { return os.OpenRoot(name + "/") }

// OpenRootIn is root.OpenRoot. The dot makes it open the name as a directory.
func OpenRootIn(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// maxEntries bounds the memory that listing a directory takes.
const maxEntries = 1 << 20

// Dirs is a root's file system for fs.ReadDir and fs.WalkDir.
func Dirs(root *os.Root) fs.ReadDirFS { return dirs{root.FS(), root} }

type dirs struct {
	fs.FS

	root *os.Root
}

// Stat returns information about a name without opening it.
func (d dirs) Stat(name string) (fs.FileInfo, error) { return d.root.Stat(name) }

// ReadDir lists a directory, sorted by name.
func (d dirs) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := OpenDir(d.root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxEntries + 1)
	if errors.Is(err, io.EOF) {
		err = nil // an empty directory
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("%s contains more than %d entries", f.Name(), maxEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
