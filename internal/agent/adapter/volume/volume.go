// Package volume knows how to publish sets of files into a directory so readers never see a
// missing, partial or mixed set, and how to read directories that another program fills.
//
// Every path is opened beneath the root it belongs to (os.Root), so neither a key nor a
// symbolic link planted by another container can make the agent write elsewhere.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// Layout is how a generation becomes visible.
type Layout string

// The layouts.
const (
	// Links is the kubelet's layout: every visible name is a symbolic link
	// through ..data, and ..data is replaced by one rename.
	Links Layout = "links"
	// Exchange keeps real files in a real directory and exchanges the whole
	// directory with renameat2, for applications that refuse symbolic links.
	Exchange Layout = "exchange"
	// Files keeps real files in real directories and changes them one by one, for mount points
	// whose readers don't follow links to directories.
	Files Layout = "files"
)

// Known reports whether the layout exists.
func (l Layout) Known() bool { return l == Links || l == Exchange || l == Files }

// Options configure where files are published, and their attributes.
type Options struct {
	// Root is the directory that the application reads.
	Root string
	// Layout is how a generation becomes visible; empty means Links.
	Layout Layout
	// FileMode and DirMode are set exactly, whatever the umask is.
	FileMode, DirMode fs.FileMode
	// UID and GID own the files, GID the directories too; -1 keeps the process defaults.
	UID, GID int
	// Overwrite replaces files of the same name that another program wrote.
	Overwrite bool
	// Durable syncs files and directories to the disk before publishing.
	Durable bool
	// Grace is how long a generation stays readable after it was replaced, for
	// readers that opened its directory before.
	Grace time.Duration
}

// DefaultOptions are the default options for root.
func DefaultOptions(root string) Options {
	return Options{
		Root: root, Layout: Links, FileMode: 0o644, DirMode: 0o755, UID: -1, GID: -1, Grace: 10 * time.Second,
	}
}

// Validate reports every mistake in the options.
func (o Options) Validate() error {
	var mistakes []error
	if o.Root == "" {
		mistakes = append(mistakes, errors.New("the root directory is missing"))
	}
	if !o.Layout.Known() {
		mistakes = append(mistakes, fmt.Errorf("layout %q: want links, exchange or files", o.Layout))
	}
	if o.Layout == Files && o.givesAway() {
		mistakes = append(mistakes, errors.New("the layout files can't change the owner of files: run as that user, or use the layout links"))
	}
	if o.FileMode&^fs.ModePerm != 0 || o.FileMode&0o400 == 0 {
		mistakes = append(mistakes, fmt.Errorf("file mode %#o: want permission bits with at least 0400", uint32(o.FileMode)))
	}
	if o.DirMode&^fs.ModePerm != 0 || o.DirMode&0o700 != 0o700 {
		mistakes = append(mistakes, fmt.Errorf("directory mode %#o: want permission bits with at least 0700", uint32(o.DirMode)))
	}
	if o.Grace < 0 {
		mistakes = append(mistakes, fmt.Errorf("grace %s: must not be negative", o.Grace))
	}
	for _, id := range []int{o.UID, o.GID} {
		if id < -1 || int64(id) >= math.MaxUint32 {
			mistakes = append(mistakes, fmt.Errorf("owner %d: want a user or group ID, or -1", id))
		}
	}
	if o.givesAway() && o.DirMode&0o011 == 0 {
		mistakes = append(mistakes, fmt.Errorf("directory mode %#o with another owner of the files: the agent stays the owner of directories, "+
			"so the other owner needs 0711, or 0710 and their group", uint32(o.DirMode)))
	}
	return errors.Join(mistakes...)
}

// givesAway reports that another user will own the files. The agent can then neither link
// them nor, with a strict mode, read them again.
func (o Options) givesAway() bool { return o.UID >= 0 && o.UID != os.Geteuid() }

// kept are the options of the contents that generations are made from: the agent stays their
// owner.
func (o Options) kept() Options {
	if o.givesAway() {
		o.UID, o.GID = -1, -1
	}
	return o
}

// stateDir is where the agent keeps its state across restarts.
const stateDir = "..lockstep"

// StateDir is the directory next to the data that contains the agent's own files: inside the
// root for Links, next to it for Exchange.
func StateDir(root string, layout Layout) string {
	if layout == Exchange {
		return filepath.Join(filepath.Dir(root), stateDir+"-"+filepath.Base(root))
	}
	return filepath.Join(root, stateDir)
}

// swapper is one layout. Its methods are called by one goroutine.
//
//nolint:interfacebloat // six small questions of one layout; two interfaces would always be used together
type swapper interface {
	// current names the visible generation; empty means none.
	current() (string, error)
	// dir is the place of a generation below the base.
	dir(id string) string
	// staged records a generation that is complete but not visible.
	staged(id string) error
	// swap makes a staged generation visible.
	swap(id string) error
	// generations lists all generations on the disk.
	generations() ([]string, error)
	// forget drops the records of a staged generation.
	forget(id string) error
}

// Volume publishes generations of files into one directory.
type Volume struct {
	opts    Options
	base    *os.Root // the root, or its parent for Exchange
	state   *os.Root
	lock    *os.File
	swapper swapper

	objects objects
	retired map[string]time.Time
	now     func() time.Time
}

// Open prepares the root: it creates missing directories, makes sure that the agent owns the
// root and that no other agent publishes there, and removes a killed agent's unfinished
// work.
func Open(opts Options, now func() time.Time) (*Volume, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(opts.Root)
	if err != nil {
		return nil, fmt.Errorf("find the root %s: %w", opts.Root, err)
	}
	opts.Root = root
	v := &Volume{opts: opts, retired: map[string]time.Time{}, now: now}
	if err := v.open(); err != nil {
		v.Close()
		return nil, fmt.Errorf("prepare the root %s: %w", root, err)
	}
	return v, nil
}

func (v *Volume) open() error {
	basePath := v.opts.Root
	if v.opts.Layout == Exchange {
		basePath = filepath.Dir(basePath)
	}
	if err := makeBase(basePath, v.opts.DirMode); err != nil {
		return err
	}
	var err error
	if v.base, err = plainfile.OpenRoot(basePath); err != nil {
		return err
	}
	if err := v.refuseForeign(); err != nil {
		return err
	}
	if err := v.openState(); err != nil {
		return err
	}
	v.objects = newObjects(v.state, v.opts)
	if v.swapper, err = v.newSwapper(); err != nil {
		return err
	}
	return v.discardUnfinished()
}

// makeBase creates the directory with the configured mode; an existing one stays as it is.
func makeBase(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// refuseForeign refuses a volume that the kubelet or another program already publishes into.
func (v *Volume) refuseForeign() error {
	if v.opts.Layout == Exchange {
		return nil
	}
	target, err := v.base.Readlink(dataLink)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && strings.HasPrefix(target, generationPrefix)) {
		return nil
	}
	return fmt.Errorf("%s exists, and this agent didn't create it (a mounted ConfigMap?): use a separate root", dataLink)
}

func (v *Volume) openState() error {
	name := filepath.Base(StateDir(v.opts.Root, v.opts.Layout))
	if err := v.base.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: uid %d cannot write there; set fsGroup or runAsUser", err, os.Getuid())
	}
	var err error
	if v.state, err = plainfile.OpenRootIn(v.base, name); err != nil {
		return err
	}
	if v.lock, err = v.state.OpenFile("lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("%w: uid %d can't use the files of an agent that ran with another uid; run with that uid, or empty the directory", err, os.Getuid())
	}
	if err := unix.Flock(int(v.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("another agent already publishes here: use a separate root for each (%w)", err)
	}
	return v.hideKey()
}

// baseName is the last element of a root's path.
func baseName(root *os.Root) string { return filepath.Base(filepath.Clean(root.Name())) }

func (v *Volume) newSwapper() (swapper, error) {
	if v.opts.Layout == Exchange {
		return newExchange(v.base, v.state, filepath.Base(v.opts.Root))
	}
	if v.opts.Layout == Files {
		p := &inPlace{base: v.base, state: v.state, overwrite: v.opts.Overwrite, list: v.fileList, makeDir: v.makeDir, finishDir: v.finishOwnDir}
		return p, p.resume()
	}
	l := &links{base: v.base, overwrite: v.opts.Overwrite}
	return l, l.tidy()
}

// makeDir creates a directory with its mode and group.
func (v *Volume) makeDir(name string) error {
	if err := v.base.Mkdir(name, 0o700); err != nil {
		return err
	}
	return v.finishDir(name)
}

// finishOwnDir sets mode and group on an existing directory, which an earlier agent may have
// created with other options. It leaves another user's directory unchanged.
func (v *Volume) finishOwnDir(name string) error {
	info, err := v.base.Lstat(name)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return nil
	}
	if info.Mode().Perm() == v.opts.DirMode && (v.opts.GID < 0 || int(stat.Gid) == v.opts.GID) {
		return nil
	}
	return v.finishDir(name)
}

// discardUnfinished removes generations that are neither visible nor recorded as complete: a
// killed agent may have left them incomplete.
func (v *Volume) discardUnfinished() error {
	current, err := v.swapper.current()
	if err != nil {
		return err
	}
	ids, err := v.swapper.generations()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id == current || v.Has(id) {
			continue
		}
		if err := v.removeGeneration(id); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the directory for another agent.
func (v *Volume) Close() {
	if v.lock != nil {
		_ = v.lock.Close() // closing releases the lock, even with an error
	}
	if v.state != nil {
		_ = v.state.Close()
	}
	if v.base != nil {
		_ = v.base.Close()
	}
}

// Current names the generation that readers see; empty means none.
func (v *Volume) Current() (string, error) { return v.swapper.current() }

// objects is the store of contents: one file for each value in use, so nothing has to stay
// in memory.
type objects struct {
	state *os.Root
	opts  Options

	mu     sync.Mutex
	known  map[filemap.Digest]bool
	pinned map[filemap.Digest]int
	serial int
}
