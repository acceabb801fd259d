// Package memory gives back to the node what a process no longer needs.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// KeepReturning returns memory as soon as starting and loading are over, once more when the
// first changes have gone through, and then rarely: the runtime and the kernel would hold on
// to it much longer. It ends with the context.
func KeepReturning(ctx context.Context) { keep(ctx, Return) }

func keep(ctx context.Context, giveBack func()) {
	for wait, next := 2*time.Second, 18*time.Second; ; wait, next = next, 10*time.Minute {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			giveBack()
		}
	}
}

// Return gives back the free part of the heap, and the pages of the program file that are not
// in use. The kernel maps a program in large pieces, and most of what runs once at the start
// would otherwise count as this process's memory for ever. Whatever is needed again comes back
// from the page cache by itself.
func Return() {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if first, size, ok := programPages(line, program); ok {
			// Advice only: an error changes nothing but the memory in use.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, size, unix.MADV_DONTNEED)
		}
	}
}

// programPages reads a line of /proc/self/maps such as
//
//	00400000-00a5f000 r-xp 00000000 fe:00 1234 /usr/bin/lockstep-sync
//
// and accepts only what cannot have been written to: dropping a changed page
// would lose the change.
func programPages(line, program string) (first, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[5] != program || !strings.HasPrefix(fields[1], "r-") {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	a, err1 := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil || b <= a {
		return 0, 0, false
	}
	return uintptr(a), uintptr(b - a), true
}
