package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// exchange keeps the visible generation in a real directory. The directory's inode
// identifies the generation, because names change places with it.
type exchange struct {
	base, state *os.Root
	target      string
	records     map[string]generationRecord
}

// generationRecord describes a generation independently of its directory's name.
type generationRecord struct {
	Inode uint64 `json:"inode"`
}

const recordSuffix = ".json"

func newExchange(base, state *os.Root, target string) (*exchange, error) {
	e := &exchange{base: base, state: state, target: target, records: map[string]generationRecord{}}
	if err := errors.Join(e.probe(), e.load()); err != nil {
		return nil, err
	}
	if err := e.settle(); err != nil {
		return nil, err
	}
	if _, err := e.current(); err != nil {
		return nil, err
	}
	return e, nil
}

// probe checks at start, not at the first change, whether the file system can exchange
// directories.
func (e *exchange) probe() error {
	for _, name := range []string{"probe-a", "probe-b"} {
		if err := e.state.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	err := e.rename("probe-a", e.state, "probe-b", unix.RENAME_EXCHANGE)
	if err != nil {
		err = fmt.Errorf("this file system cannot exchange directories, use the layout links (%w)", err)
	}
	return errors.Join(err, e.state.Remove("probe-a"), e.state.Remove("probe-b"), e.refuseMount())
}

// refuseMount detects a root that is a mount point. It can't be exchanged, because a mount
// stays with its directory. Linux 5.8 and later reports mount points; on older kernels the
// check is whether root and state are on different devices.
func (e *exchange) refuseMount() error {
	dir, err := plainfile.OpenDir(e.base, ".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	var root, state unix.Statx_t
	err = unix.Statx(int(dir.Fd()), e.target, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be created
	}
	if err == nil {
		err = unix.Statx(int(dir.Fd()), baseName(e.state), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &state)
	}
	if err != nil {
		return err
	}
	if root.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 || root.Dev_major != state.Dev_major || root.Dev_minor != state.Dev_minor {
		return fmt.Errorf("a volume is mounted at %s, and a mount point cannot be exchanged: use a root below it, or the layout links", e.target)
	}
	return nil
}

// settle renames generations by their inodes, in case an agent was killed between the
// exchange and the renaming after it.
func (e *exchange) settle() error {
	ids, err := e.generations()
	if err != nil {
		return err
	}
	for _, id := range ids {
		inode, err := inodeOf(e.state, generationName(id))
		if err != nil || e.identify(inode) == id || e.identify(inode) == "" {
			continue
		}
		if err := e.state.Rename(generationName(id), generationName(e.identify(inode))); err != nil {
			return err
		}
	}
	return nil
}

func (e *exchange) current() (string, error) {
	inode, err := inodeOf(e.base, e.target)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if id := e.identify(inode); id != "" {
		return id, nil
	}
	entries, err := fs.ReadDir(plainfile.Dirs(e.base), e.target)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s contains files that this agent didn't write: use a separate root", e.target)
	}
	return "", nil
}

// identify finds the generation that a directory holds.
func (e *exchange) identify(inode uint64) string {
	for id, record := range e.records {
		if record.Inode == inode {
			return id
		}
	}
	return ""
}

// load reads the records of an earlier process. An unreadable record belongs to a generation
// that was not finished.
func (e *exchange) load() error {
	entries, err := fs.ReadDir(plainfile.Dirs(e.state), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), recordSuffix)
		id, isGeneration := strings.CutPrefix(name, "gen-")
		if !isRecord || !isGeneration {
			continue
		}
		raw, err := plainfile.ReadIn(e.state, entry.Name(), plainfile.Large)
		if _, other := errors.AsType[*plainfile.KindError](err); other {
			return err
		}
		var record generationRecord
		if err == nil && json.Unmarshal(raw, &record) == nil {
			e.records[id] = record
		}
	}
	return nil
}

func generationName(id string) string { return "gen-" + id }

func (e *exchange) dir(id string) string {
	if current, err := e.current(); err == nil && current == id {
		return e.target
	}
	return path.Join(baseName(e.state), generationName(id))
}

func (e *exchange) staged(id string) error {
	inode, err := inodeOf(e.state, generationName(id))
	if err != nil {
		return err
	}
	if stale := e.identify(inode); stale != "" && stale != id {
		if err := e.forget(stale); err != nil {
			return err
		}
	}
	record := generationRecord{Inode: inode}
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	e.records[id] = record
	return writeState(e.state, generationName(id)+recordSuffix, raw, private())
}

func (e *exchange) forget(id string) error {
	delete(e.records, id)
	err := e.state.Remove(generationName(id) + recordSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (e *exchange) generations() ([]string, error) {
	entries, err := fs.ReadDir(plainfile.Dirs(e.state), ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, entry := range entries {
		if id, ok := strings.CutPrefix(entry.Name(), "gen-"); ok && entry.IsDir() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// swap exchanges the directories. The old directory then has the new one's name in the state
// directory and is renamed to its own.
func (e *exchange) swap(id string) error {
	old, err := e.current()
	if err != nil || old == id {
		return err
	}
	if _, err := e.base.Lstat(e.target); errors.Is(err, fs.ErrNotExist) {
		return e.rename(generationName(id), e.base, e.target, unix.RENAME_NOREPLACE)
	}
	if err := e.rename(generationName(id), e.base, e.target, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	if old == "" { // an empty directory that existed before the agent
		return e.state.Remove(generationName(id))
	}
	return e.state.Rename(generationName(id), generationName(old))
}

// rename uses names inside open directories, so a link in the path can't redirect it.
func (e *exchange) rename(name string, to *os.Root, newName string, flags uint) error {
	from, err := plainfile.OpenDir(e.state, ".")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	into, err := plainfile.OpenDir(to, ".")
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	return unix.Renameat2(int(from.Fd()), name, int(into.Fd()), newName, flags)
}

func inodeOf(root *os.Root, name string) (uint64, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return 0, fmt.Errorf("%s is not a directory", name)
	}
	return stat.Ino, nil
}
