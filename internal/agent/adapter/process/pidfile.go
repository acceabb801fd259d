package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/plainfile"
)

// openPidfile opens the process of a pidfile, and then checks whether it can be the process
// that wrote the file.
func openPidfile(name string) (handle, error) {
	pid, written, err := readPidfile(name)
	if err != nil {
		return handle{}, err
	}
	// Both are PID 1, each in its own container: the agent would end itself.
	if pid == os.Getpid() {
		return handle{}, fmt.Errorf("process %d is the agent itself: the pod needs shareProcessNamespace: true", pid)
	}
	h, err := openPID(pid)
	if err != nil {
		return handle{}, err
	}
	if err := refuseStale(pid, written); err != nil {
		return handle{}, errors.Join(err, unix.Close(h.fd))
	}
	return h, nil
}

func readPidfile(name string) (pid int, written time.Time, err error) {
	info, err := os.Stat(name)
	if err == nil {
		written = info.ModTime()
	}
	raw, err := plainfile.Read(name, plainfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, written, &AbsentError{err}
	}
	if err != nil {
		return 0, written, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(raw)), "\n")
	pid, err = strconv.Atoi(first)
	if err != nil || pid <= 0 {
		return 0, written, &AbsentError{fmt.Errorf("%s doesn't contain a process ID", name)}
	}
	return pid, written, nil
}

// clockDoubt is how far the two compared times may differ although the PID was not reused:
// file systems round, and setting the clock changes one of them and not the other.
const clockDoubt = 2 * time.Second

// refuseStale detects a process that started after its PID was written: the process that
// wrote the file is gone, and this one only got the same PID.
func refuseStale(pid int, written time.Time) error {
	began, ok := beginning(pid, time.Now())
	if !ok || written.IsZero() || began.Before(written.Add(clockDoubt)) {
		return nil
	}
	return &AbsentError{fmt.Errorf("the pidfile is stale: process %d started %s after it was written",
		pid, began.Sub(written).Round(time.Second))}
}

// beginning is when a process started. The kernel counts that from the start of the machine,
// independently of later clock changes.
func beginning(pid int, now time.Time) (time.Time, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return time.Time{}, false
	}
	ticks, ok := startTicks(string(raw))
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil || !ok {
		return time.Time{}, false
	}
	age := time.Duration(up.Nano()) - time.Duration(ticks)*tick
	return now.Add(-age), true
}

// tick is the unit of times in /proc: USER_HZ is 100 wherever Go runs on Linux.
const tick = 10 * time.Millisecond

// startTicks parses the 22nd field of "12 (name) S 1 …"; the name may contain blanks and
// brackets, so the last bracket counts.
func startTicks(stat string) (int64, bool) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	const started = 22 - 3 // the third field is the first one after the name
	if len(fields) <= started {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[started], 10, 64)
	return n, err == nil
}
