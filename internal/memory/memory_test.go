package memory

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestProgramPages(t *testing.T) {
	const program = "/bin/x"
	for line, want := range map[string]bool{
		"00400000-00401000 r-xp 00000000 fe:00 1 /bin/x": true,
		"00400000-00401000 r--p 00000000 fe:00 1 /bin/x": true,
		"00400000-00401000 rw-p 00000000 fe:00 1 /bin/x": false,
		"00400000-00401000 r-xp 00000000 fe:00 1 /bin/y": false,
		"00400000-00401000 rw-p 00000000 00:00 0":        false,
		"00401000-00400000 r-xp 00000000 fe:00 1 /bin/x": false,
	} {
		if _, size, ok := programPages(line, program); ok != want || (ok && size != 0x1000) {
			t.Errorf("%s: %v, size %x", line, ok, size)
		}
	}
}

// TestReturn: the kernel drops pages of the program file. The test maps and reads the whole file,
// so that what the process reads again meanwhile is little beside it.
func TestReturn(t *testing.T) {
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := unix.Mmap(int(program.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(pages) }()
	zeros := bytes.Count(pages, []byte{0})
	before := ofFiles(t)
	Return()
	if after := ofFiles(t); before-after < int(info.Size())/1024/2 {
		t.Errorf("%d KiB of files in memory, %d before, want at least half of the program's %d KiB less", after, before, info.Size()/1024)
	}
	if again := bytes.Count(pages, []byte{0}); again != zeros {
		t.Errorf("the file has %d zeros, %d before", again, zeros)
	}
}

// ofFiles is how many KiB of this process are pages of files.
func ofFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "RssFile:" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel doesn't say how much of a process are pages of files")
	return 0
}

// TestKeepReturning: twice soon after the start and then rarely, until the context ends.
func TestKeepReturning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
		defer cancel()
		var at []time.Duration
		begun := time.Now()
		keep(ctx, func() { at = append(at, time.Since(begun)) })
		if got, want := fmt.Sprint(at), "[2s 20s 10m20s 20m20s]"; got != want {
			t.Errorf("memory was given back at %s, want %s", got, want)
		}
		if took := time.Since(begun); took != 25*time.Minute {
			t.Errorf("it ended after %s, want the end of its context", took)
		}
	})
}
