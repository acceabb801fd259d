package dirwatch_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/dirwatch"
	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const patience = time.Minute

// What changed after the caller's last look and before the watch began has no
// event, so the beginning itself is a reason to look.
func TestWatchWakesWhenItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() {
		done <- dirwatch.Watch(ctx, t.TempDir(), dirwatch.Options{Rescan: time.Hour, Poll: time.Hour}, func() { woken <- struct{}{} })
	}()
	select {
	case <-woken:
	case <-time.After(patience):
		t.Error("a change before the watch began would not be noticed")
	}
	cancel()
	<-done
}

func TestWatchWakesForEveryKindOfChange(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "sub"))
	mkdir(t, filepath.Join(dir, "..one"))
	mkdir(t, filepath.Join(dir, "..two"))
	mustLink(t, "..one", filepath.Join(dir, "..data"))
	woken := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- dirwatch.Watch(ctx, dir, dirwatch.Options{Rescan: time.Hour, Poll: time.Hour}, func() { woken <- struct{}{} })
	}()
	for what, change := range map[string]func(){
		"new file":           func() { write(t, filepath.Join(dir, "a"), "1") },
		"file below":         func() { write(t, filepath.Join(dir, "sub", "b"), "2") },
		"swap of the volume": func() { swapLink(t, dir, "..two") },
	} {
		waitFor(t, what, woken, change)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v", err)
	}
}

// A directory that is itself a link is watched where it leads.
func TestWatchFollowsALink(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "dir"), filepath.Join(parent, "link")
	mkdir(t, dir)
	mustLink(t, "dir", link)
	woken := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- dirwatch.Watch(ctx, link, dirwatch.Options{Rescan: time.Hour, Poll: time.Hour}, func() { woken <- struct{}{} })
	}()
	<-woken // it has begun
	waitFor(t, "a file behind a link", woken, func() { write(t, filepath.Join(dir, "a"), "1") })
	cancel()
	<-done
}

// waitFor repeats the change until it is seen: the watch may not have begun.
func waitFor(t *testing.T, what string, woken <-chan struct{}, change func()) {
	t.Helper()
	deadline := time.After(patience)
	for {
		change()
		select {
		case <-woken:
			return
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s was not noticed", what)
		}
	}
}

func swapLink(t *testing.T, dir, target string) {
	t.Helper()
	temporary := filepath.Join(dir, "..data_tmp")
	_ = os.Remove(temporary) // usually not there
	mustLink(t, target, temporary)
	if err := os.Rename(temporary, filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// With all inotify instances of the user taken the agent looks regularly. They
// are counted for each user, so that an unused one disturbs nobody.
func TestWatchPollsWhenInotifyIsUsedUp(t *testing.T) {
	labtest.In(t, labtest.TierAll) // only root can be another user
	dir := t.TempDir()
	asEffectiveUser(t, 1<<30+os.Getpid(), func() {
		defer takeAllInotify()()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var told error
		looks := 0
		err := dirwatch.Watch(ctx, dir, dirwatch.Options{
			Rescan: time.Hour, Poll: time.Millisecond, Polling: func(err error) { told = err },
		}, func() {
			if looks++; looks == 2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || looks < 2 || !errors.Is(told, unix.EMFILE) {
			t.Errorf("ended with %v after %d looks, told %v", err, looks, told)
		}
	})
}

// A directory that is added when the user has no watches left isn't watched, so the agent says so and looks regularly. In a
// user namespace of its own, the test has a limit of its own.
func TestWatchPollsWhenWatchesRunOutLater(t *testing.T) {
	labtest.In(t, labtest.TierAll) // not every machine lets other users than root make a user namespace
	if os.Getenv(fewWatches) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		inside := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
		inside.Env = append(os.Environ(), fewWatches+"=1")
		inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}}
		if said, err := inside.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("--- PASS: "+t.Name())) {
			t.Errorf("%v\n%s", err, said)
		}
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_inotify_watches", []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var told []error
	looks := 0 // since it was told
	err := dirwatch.Watch(ctx, dir, dirwatch.Options{
		Rescan: time.Hour, Poll: time.Millisecond, Polling: func(err error) { told = append(told, err) },
	}, func() {
		if len(told) == 0 { // The second directory is one too many.
			for _, name := range []string{"a", "b", "c"} {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
					t.Error(err)
				}
			}
		} else if looks++; looks == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || looks < 3 || len(told) != 1 || !errors.Is(told[0], unix.ENOSPC) {
		t.Errorf("ended with %v after %d more looks, told %v", err, looks, told)
	}
}

// A directory below that can't be read, at the start or later, doesn't end the watch of the others. The caller's scan fails on
// it and says so.
func TestWatchGoesOnBesideAnUnreadableDirectory(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "a"))
	mkdir(t, filepath.Join(dir, "z"))
	for _, name := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "z")} {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	unprivileged(t, func() {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		changes := []func(){
			func() {
				if err := os.Mkdir(filepath.Join(dir, "b"), 0); err != nil {
					t.Error(err)
				}
			},
			func() { write(t, filepath.Join(dir, "z", "below"), "1") },
			cancel,
		}
		err := dirwatch.Watch(ctx, dir, dirwatch.Options{Rescan: time.Hour, Poll: time.Hour}, func() {
			if len(changes) > 0 {
				changes[0]()
				changes = changes[1:]
			}
		})
		if !errors.Is(err, context.Canceled) || len(changes) > 0 {
			t.Errorf("ended with %v, %d changes were not noticed", err, len(changes))
		}
	})
}

// unprivileged runs f as a user who can't read everything.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	asEffectiveUser(t, 1<<30+os.Getpid(), f)
}

// fewWatches marks the process with a small limit.
const fewWatches = "LOCKSTEP_TEST_FEW_WATCHES"

// takeAllInotify takes what the kernel gives to this user. The returned function
// gives it back.
func takeAllInotify() func() {
	var taken []int
	for {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	return func() {
		for _, fd := range taken {
			_ = unix.Close(fd)
		}
	}
}

// asEffectiveUser runs f as another user for whom the kernel counts, on a thread that
// is thrown away afterwards.
func asEffectiveUser(t *testing.T, uid int, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		const unchanged = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
			t.Error(errno)
			return
		}
		f()
	}()
	<-done
}

func mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustLink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
