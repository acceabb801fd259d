package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock takes a file lock that the kernel releases when the process ends, however it ends.
// The file stays.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, func() {})
}

// lock calls waiting once when another process holds the lock.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := flock(ctx, file, waiting); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { file.Close() }, nil //nolint:errcheck // Closing gives the lock back; nothing was written.
}

// flock polls instead of waiting in the kernel, because a wait in the kernel does not end
// when ctx does.
func flock(ctx context.Context, file *os.File, waiting func()) error {
	for first := true; ; first = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
