package volume_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// needsRoot leaves a test that changes users, owners or mounts to "make test-all".
func needsRoot(t *testing.T) {
	t.Helper()
	labtest.In(t, labtest.TierAll)
}

// onOwnThread runs f on a thread that is thrown away afterwards, so that it may
// change what belongs to its thread.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f()
	}()
	<-done
}

// asUser runs f with another file system identity.
func asUser(t *testing.T, uid int, f func()) {
	t.Helper()
	onOwnThread(func() {
		// The library's Setfsuid changes all threads; this changes one.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0); errno != 0 {
			t.Error(errno)
			return
		}
		f()
	})
}

// withCapability runs f as root with one capability and no other, as a container
// that drops all and adds one.
func withCapability(t *testing.T, capability int, f func()) {
	t.Helper()
	onOwnThread(func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		sets := [2]unix.CapUserData{{Effective: 1 << capability, Permitted: 1 << capability}}
		if err := unix.Capset(&header, &sets[0]); err != nil {
			t.Error(err)
			return
		}
		f()
	})
}

// inMountNamespace runs f where it may mount without anybody else seeing it.
func inMountNamespace(t *testing.T, f func()) {
	t.Helper()
	onOwnThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			t.Error(err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Error(err)
			return
		}
		f()
	})
}
