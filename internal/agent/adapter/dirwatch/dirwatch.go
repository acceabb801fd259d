// Package dirwatch notices that something in a directory may have changed: by inotify,
// or by looking regularly where the node has none left.
package dirwatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options say how closely a directory is followed.
type Options struct {
	// Rescan is how often the directory is looked at although no event came.
	Rescan time.Duration
	// Poll is how often it is looked at when the node has no inotify left.
	Poll time.Duration
	// Polling is told, once, why events are not used.
	Polling func(err error)
}

// Watch calls changed when it has begun, because what happened before has no
// event, and whenever the directory may have changed, until ctx ends. An event
// only wakes the caller up: what changed is for a scan to find out.
// When the node's inotify limits are used up it looks regularly instead.
func Watch(ctx context.Context, dir string, opts Options, changed func()) error {
	watcher, err := newWatcher(dir)
	if exhausted(err) {
		opts.Polling(err)
		return poll(ctx, opts.Poll, changed)
	}
	if err != nil {
		return fmt.Errorf("watch the directory %s: %w", dir, err)
	}
	defer func() { _ = watcher.Close() }()
	rescan := time.NewTicker(opts.Rescan)
	defer rescan.Stop()
	changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rescan.C:
		case event := <-watcher.Events:
			if !settle(ctx, watcher.Events, event) {
				continue
			}
		case <-watcher.Errors: // an overflow loses events, not the need to look
		}
		// Directories come and go with every swap; adding one twice is harmless.
		if err := addAll(watcher, dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !exhausted(err) {
			return fmt.Errorf("watch the directory %s: %w", dir, err)
		}
		changed()
	}
}

// dataLink is what the kubelet swaps: the one name whose target decides what readers
// of a mounted volume see.
const dataLink = "..data"

// A burst in a plain directory is over when no event came for burstGap, and is
// looked at after burstLimit in any case.
const (
	burstGap   = 50 * time.Millisecond
	burstLimit = time.Second
)

// settle waits for the end of the burst that an event begins, so that it costs
// one look and not one per event. It says whether there is anything to look at:
// the kubelet builds a generation under names that nobody reads, and then swaps
// ..data, which changes everything in one step and needs no waiting.
func settle(ctx context.Context, events <-chan fsnotify.Event, event fsnotify.Event) bool {
	look := false
	limit, gap := time.NewTimer(burstLimit), time.NewTimer(burstGap)
	defer limit.Stop()
	defer gap.Stop()
	for {
		switch name := filepath.Base(event.Name); {
		case name == dataLink:
			return true
		case !strings.HasPrefix(name, ".."):
			look = true
			gap.Reset(burstGap)
		case !look:
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-limit.C:
			return true
		case <-gap.C:
			return true
		case event = <-events:
		}
	}
}

func newWatcher(dir string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := addAll(watcher, dir); err != nil {
		_ = watcher.Close()
		return nil, err
	}
	return watcher, nil
}

// addAll watches the directory and the directories below it. Generations of a
// mounted volume need no watch: the swap of ..data shows in the directory. A
// directory that is a link is looked up each time, because a walk would not
// follow it.
func addAll(watcher *fsnotify.Watcher, dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if p != dir && strings.HasPrefix(d.Name(), "..") {
			return fs.SkipDir
		}
		return watcher.Add(p)
	})
}

func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOSPC)
}

func poll(ctx context.Context, every time.Duration, changed func()) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			changed()
		}
	}
}
