// Package dirwatch notices that something in a directory may have changed: by inotify, or by
// polling when the node's inotify limits are used up.
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

// Options configure how closely a directory is followed.
type Options struct {
	// Rescan is how often the directory is scanned even when no event came.
	Rescan time.Duration
	// Poll is how often it is scanned when the node's inotify limits are used up.
	Poll time.Duration
	// Polling is called once with the reason why inotify can't be used, at the start or later.
	Polling func(err error)
}

// Watch calls changed when it starts, because earlier changes have no event, and whenever
// the directory may have changed, until ctx ends. An event only wakes up the caller: a scan
// has to find out what changed. When the node's inotify limits are used up, at the start or when a
// directory is added, Watch polls instead.
func Watch(ctx context.Context, dir string, opts Options, changed func()) error {
	watcher, err := newWatcher(dir)
	if err == nil {
		err = watch(ctx, watcher, dir, opts.Rescan, changed)
		_ = watcher.Close() // Its watches are of use to others.
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case exhausted(err):
		opts.Polling(err)
		return poll(ctx, opts.Poll, changed)
	}
	return fmt.Errorf("watch the directory %s: %w", dir, err)
}

// watch calls changed until ctx ends, or the directories can't be watched any more.
func watch(ctx context.Context, watcher *fsnotify.Watcher, dir string, every time.Duration, changed func()) error {
	rescan := time.NewTicker(every)
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
		case <-watcher.Errors: // an overflow loses events, so scan anyway
		}
		// Every swap adds and removes directories; adding one twice is harmless.
		err := addAll(watcher, dir)
		changed()
		if exhausted(err) {
			return err
		}
	}
}

// dataLink is the link that the kubelet swaps: its target decides which files readers of a
// mounted volume see.
const dataLink = "..data"

// A burst in a plain directory is over when no event came for burstGap. It is scanned after
// burstLimit in any case.
const (
	burstGap   = 50 * time.Millisecond
	burstLimit = time.Second
)

// settle waits for the end of the burst that an event starts, so a burst costs one scan and
// not one scan per event. It returns whether a scan is needed: the kubelet builds a
// generation under names without readers, and then swaps ..data, which changes everything in
// one step and needs no waiting.
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

// addAll watches the directory and the directories below it. Generations of a mounted volume
// need no watch: the swap of ..data shows in the directory. A directory that is a link is
// resolved each time, because a walk would not follow it. A directory below that can't be watched is skipped: it is gone, or
// nobody can read it, and then the caller's scan fails on it and reports that.
func addAll(watcher *fsnotify.Watcher, dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case !d.IsDir():
			return nil
		case p != dir && strings.HasPrefix(d.Name(), ".."):
			return fs.SkipDir
		default:
			err = watcher.Add(p)
		}
		if p != dir && !exhausted(err) {
			return nil
		}
		return err
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
