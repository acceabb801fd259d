package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/dirwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/objectwatch"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/adapter/volume"
	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/memory"
)

// files is a volume of either kind.
type files interface {
	podsync.Publisher
	podsync.StateStore
}

// runner holds the parts while they are assembled and run.
type runner struct {
	config Config
	log    *slog.Logger
	now    func() time.Time

	files   files
	store   podsync.Store
	keeper  volume.Keeper
	parent  *process.Parent
	child   *process.Child
	agent   *podsync.Agent
	watcher *objectwatch.Watcher
	sink    loud
	close   func()
}

// Run runs one agent until ctx ends, the application ends, or the start fails.
// Its error is a *podsync.ExitError when the application ended.
func Run(ctx context.Context, config Config, log *slog.Logger, now func() time.Time) error {
	if err := config.Validate(); err != nil {
		return err
	}
	for _, w := range config.Warnings {
		log.Warn(w)
	}
	r := &runner{config: config.complete(), log: log, now: now, parent: process.NewParent(), close: func() {}}
	defer func() { r.close() }()
	for _, join := range []func() error{r.joinFiles, r.joinAgent, r.joinWatcher} {
		if err := join(); err != nil {
			return err
		}
	}
	return r.run(ctx)
}

func (r *runner) joinFiles() error {
	for _, dir := range r.config.Directories {
		if info, err := os.Stat(dir); !r.config.Sync.WaitForSources && (err != nil || !info.IsDir()) {
			return &podsync.MissingError{Sources: []string{"directory " + dir}}
		}
	}
	if r.config.Volume.Root == "" {
		mounted := volume.NewMounted(r.config.Directories[0])
		r.files, r.store, r.keeper = mounted, hashOnly{mounted}, volume.HashOnly{}
		return nil
	}
	v, err := volume.Open(r.config.Volume, r.now)
	if err != nil {
		return err
	}
	r.files, r.store, r.keeper, r.close = v, v, v, v.Close
	return nil
}

// hashOnly is the store of an agent that doesn't publish.
type hashOnly struct{ *volume.Mounted }

// Keep is never called: an API source requires a root.
func (hashOnly) Keep([]byte) (filemap.Digest, error) { return filemap.Digest{}, errors.ErrUnsupported }

func (r *runner) joinAgent() error {
	parts, child, err := r.config.application(r.parent)
	if err != nil {
		return err
	}
	r.child = child
	parts.Publisher, parts.States, parts.Root = r.files, r.files, r.config.Volume.Root
	parts.Log, parts.Now, parts.Jitter, parts.Age = r.log, r.now, mathrand.Float64, r.age()
	if parts.Root == "" {
		parts.Root = r.config.Directories[0]
	}
	if parts.Key, err = r.key(); err != nil {
		return err
	}
	if r.agent, err = podsync.New(r.config.Sync, parts, r.store); err != nil {
		return err
	}
	r.sink = loud{Inventory: r.agent.Inventory(), log: r.log}
	return nil
}

// age queries the watcher, which is created after the agent.
func (r *runner) age() func() (string, time.Duration) {
	if len(r.config.Selectors) == 0 {
		return nil
	}
	return func() (string, time.Duration) { return r.watcher.Age() }
}

// key is the secret key for generation names. It is stored next to the data, so a restarted
// agent computes the same names.
func (r *runner) key() ([]byte, error) {
	const name, size = "key", 32
	key, err := r.files.ReadState(name)
	if err != nil || len(key) == size {
		return key, err
	}
	key = make([]byte, size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, r.files.WriteState(name, key)
}

func (r *runner) joinWatcher() error {
	if len(r.config.Selectors) == 0 {
		return nil
	}
	config, err := r.config.Kube.restConfig()
	if err != nil {
		return err
	}
	r.watcher, err = objectwatch.New(config, r.config.watchOptions(), r.sink, r.now)
	return err
}

// loud logs failures of sources, each once until it changes or passes.
type loud struct {
	*podsync.Inventory
	log *slog.Logger
}

// Failed passes the failure on, and logs it if it is new.
func (l loud) Failed(source string, err error) {
	if l.Inventory.Failed(source, err) {
		l.log.Warn("a source cannot be read", "source", source, "error", err)
	}
}

// Recovered passes the recovery on, and logs it if the source was failing.
func (l loud) Recovered(source string) {
	if l.Inventory.Recovered(source) {
		l.log.Info("a source can be read again", "source", source)
	}
}

// Remove logs the deletion and passes it on.
func (l loud) Remove(source string, ref filemap.Ref) {
	l.log.Warn("an object was deleted", "source", source, "object", ref.String())
	l.Inventory.Remove(source, ref)
}

// run starts everything and waits for the agent's end.
func (r *runner) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	stopHealth, err := r.serveHealth(&helpers)
	if err != nil {
		return err
	}
	defer stopHealth()
	if r.child != nil || os.Getpid() == 1 {
		helpers.Go(func() {
			if err := r.parent.ReapOrphans(ctx); err != nil {
				r.log.Warn("cannot reap orphans", "error", err)
			}
		})
	}
	if r.watcher != nil {
		helpers.Go(func() { r.watcher.Run(ctx) })
	}
	for _, dir := range r.config.Directories {
		helpers.Go(func() { r.followDirectory(ctx, dir) })
	}
	helpers.Go(func() { memory.KeepReturning(ctx) })
	if r.child != nil {
		return r.runChild(ctx)
	}
	return r.agent.Run(ctx)
}

// followDirectory scans the directory now and whenever it may have changed.
func (r *runner) followDirectory(ctx context.Context, dir string) {
	source := "directory " + dir
	reader := volume.NewDirectory(dir, r.keeper)
	reader.Limit(r.config.Sync.Rules.MaxBytes, func(ref filemap.Ref, weight int64) bool { return r.sink.Admit(source, ref, weight) })
	scan := func() {
		object, changed, err := reader.Scan()
		if err != nil {
			r.sink.Failed(source, err)
			return
		}
		r.sink.Recovered(source)
		if changed {
			object.Subdir = r.subdir(dir)
			r.sink.Replace(source, []filemap.Object{object})
		}
	}
	scan()
	said := "" // A directory that can't be watched is reported once, and not every few seconds.
	for ctx.Err() == nil {
		err := dirwatch.Watch(ctx, dir, dirwatch.Options{Rescan: r.config.Rescan, Poll: r.config.Poll, Polling: func(err error) {
			r.log.Warn("the node has no inotify watches left, checking regularly instead", "directory", dir, "every", r.config.Poll, "error", err)
		}}, scan)
		if ctx.Err() != nil {
			return
		}
		if err.Error() != said {
			said = err.Error()
			r.log.Warn("watching a directory failed, trying again", "directory", dir, "error", err)
		}
		pause(ctx, r.config.Poll)
		scan()
	}
}

// subdir distinguishes directories that are only watched.
func (r *runner) subdir(dir string) string {
	if len(r.config.Directories) < 2 || r.config.Volume.Root != "" {
		return ""
	}
	return "directory-" + strconv.Itoa(slices.Index(r.config.Directories, dir))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Install copies the running program into a directory that other containers share, so
// subprocess mode doesn't require rebuilding an image.
func Install(dir string) (string, error) {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("install into %s: %w", dir, err)
	}
	defer func() { _ = source.Close() }()
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // another container has to reach it
		return "", fmt.Errorf("install into %s: %w", dir, err)
	}
	target := dir + "/lockstep-sync"
	err = copyProgram(source, target+".new")
	if err == nil {
		err = unix.Rename(target+".new", target)
	}
	if err != nil {
		return "", fmt.Errorf("install into %s: %w", dir, err)
	}
	return target, nil
}

func copyProgram(source io.Reader, name string) error {
	if err := os.RemoveAll(name); err != nil { // a killed installation's leftover, or anything else that others put there
		return err
	}
	target, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(0o755), target.Close())
}
