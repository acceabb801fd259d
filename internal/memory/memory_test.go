package memory

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// TestReturn gives back what the start of this test took, and goes on with what is left.
func TestReturn(t *testing.T) {
	before := ofFiles(t)
	Return()
	if after := ofFiles(t); after >= before {
		t.Errorf("%d KiB of files in memory, %d before", after, before)
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

// TestKeepReturning: it ends with its context, whatever it waits for.
func TestKeepReturning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			KeepReturning(ctx)
		}()
		time.Sleep(3 * time.Second)
		cancel()
		<-ended
	})
}
