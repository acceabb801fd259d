package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ParseSignal parses HUP, SIGHUP, sighup or 1.
func ParseSignal(s string) (unix.Signal, error) {
	name := strings.ToUpper(s)
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 65 {
		return unix.Signal(n), nil
	}
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	return 0, fmt.Errorf("signal %q is unknown: want a name such as HUP or USR1, or a number", s)
}

// Target selects processes of this PID namespace.
type Target struct {
	// Pidfile contains the PID.
	Pidfile string
	// Name is the program's name, as in its executable or first argument.
	Name string
	// All allows more than one match for Name.
	All bool
}

// Validate reports a target that doesn't select a process.
func (t Target) Validate() error {
	if (t.Pidfile == "") == (t.Name == "") {
		return errors.New("a signal requires either a pidfile or a process name")
	}
	return nil
}

// String names the target as on the command line.
func (t Target) String() string {
	if t.Pidfile != "" {
		return "pidfile:" + t.Pidfile
	}
	return "name:" + t.Name
}

// AbsentError is a process that does not exist, or is not far enough in its start to be
// signalled.
type AbsentError struct{ Err error }

// Error returns the cause's text.
func (e *AbsentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AbsentError) Unwrap() error { return e.Err }

// Signal sends a signal to the processes that the target selects.
func Signal(target Target, sig unix.Signal) error {
	handles, err := open(target)
	if err != nil {
		return fmt.Errorf("signal %s to %s: %w", unix.SignalName(sig), target, err)
	}
	var failures []error
	for _, h := range handles {
		failures = append(failures, h.signal(sig), unix.Close(h.fd))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("signal %s to %s: %w", unix.SignalName(sig), target, err)
	}
	return nil
}

// Children lists the children of the processes that the target selects. New children after a
// reload prove that a master process accepted it.
func Children(target Target) ([]int, error) {
	handles, err := open(target)
	if err != nil {
		return nil, fmt.Errorf("list the children of %s: %w", target, err)
	}
	var children []int
	for _, h := range handles {
		children = append(children, ChildrenOf(h.pid)...)
		_ = unix.Close(h.fd)
	}
	return children, nil
}

// ChildrenOf lists the children of one process.
func ChildrenOf(pid int) []int {
	var children []int
	for _, p := range allProcesses() {
		if p.parent == pid && !p.zombie {
			children = append(children, p.pid)
		}
	}
	return children
}

// handle is a process that can't be mistaken for a later one with the same PID.
type handle struct{ pid, fd int }

func (h handle) signal(sig unix.Signal) error {
	if err := survives(h.pid, sig); err != nil {
		return err
	}
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return &AbsentError{fmt.Errorf("process %d: %w", h.pid, err)}
	}
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("pid %d belongs to uid %d and the agent is uid %d: run both with the same runAsUser, or add the "+
			"KILL capability to the agent (SYS_PTRACE is not needed): %w", h.pid, uidOf(h.pid), os.Getuid(), err)
	}
	return err
}

// survives refuses a signal that would kill the process: an application that has just
// started has not installed its handlers yet, and most signals kill by default.
func survives(pid int, sig unix.Signal) error {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || harmless(sig) {
		return nil //nolint:nilerr // if it is gone, sending will say so
	}
	if handled(string(raw), sig) || waited(threads(pid), sig) {
		return nil
	}
	return &AbsentError{fmt.Errorf("pid %d does not handle %s (yet): it would be killed", pid, unix.SignalName(sig))}
}

// harmless signals do nothing, or are meant to end the process.
func harmless(sig unix.Signal) bool {
	return slices.Contains([]unix.Signal{
		unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH, unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGQUIT, unix.SIGSTOP,
	}, sig)
}

// handled reports that the process catches or ignores the signal.
func handled(status string, sig unix.Signal) bool {
	return inMask(status, "SigCgt", sig) || inMask(status, "SigIgn", sig)
}

// waited reports that the process receives the signal with sigwait or signalfd: all of its
// threads block it, and one of them sleeps. The signal would kill a process with a thread
// that doesn't block it. A process that starts another one blocks all signals too, but only
// for a moment in which it doesn't sleep, and the signal kills it afterwards.
func waited(threads []string, sig unix.Signal) bool {
	rests := false
	for _, status := range threads {
		if !inMask(status, "SigBlk", sig) {
			return false
		}
		rests = rests || strings.HasPrefix(field(status, "State"), "S")
	}
	return rests
}

// threads returns the status of every thread of a process.
func threads(pid int) []string {
	names, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	if err != nil {
		return nil
	}
	var all []string
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended in the meantime
		}
		all = append(all, string(raw))
	}
	return all
}

// inMask looks the signal up in a mask in which signal n is bit n-1:
// "SigCgt:\t0000000000000001" means HUP.
func inMask(status, name string, sig unix.Signal) bool {
	bits, err := strconv.ParseUint(field(status, name), 16, 64)
	return err == nil && bits&(1<<(uint(sig)-1)) != 0
}

// field finds one line of a status file.
func field(status, name string) string {
	for line := range strings.Lines(status) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func open(t Target) ([]handle, error) {
	if t.Pidfile == "" {
		return openByName(t)
	}
	h, err := openPidfile(t.Pidfile)
	return []handle{h}, err
}

func openPID(pid int) (handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		return handle{pid: pid, fd: fd}, nil
	}
	err = fmt.Errorf("process %d: %w", pid, err)
	if errors.Is(err, unix.ESRCH) {
		err = &AbsentError{err}
	}
	return handle{}, err
}

// openByName finds processes, opens them and checks again: it drops a handle whose PID was
// reused in between.
func openByName(t Target) ([]handle, error) {
	found := topmost(t.Name)
	if len(found) == 0 {
		return nil, &AbsentError{errors.New("no such process; the pod needs shareProcessNamespace: true for processes of other containers")}
	}
	if len(found) > 1 && !t.All {
		return nil, fmt.Errorf("%d processes match (%v): select one with @pidfile:PATH, or signal all of them with @all:NAME", len(found), found)
	}
	var handles []handle
	for _, pid := range found {
		h, err := openPID(pid)
		if _, ended := errors.AsType[*AbsentError](err); ended {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(handles))
		}
		if !slices.Contains(topmost(t.Name), pid) {
			_ = unix.Close(h.fd)
			continue
		}
		handles = append(handles, h)
	}
	if len(handles) == 0 {
		return nil, &AbsentError{errors.New("the process ended before it could be signalled")}
	}
	return handles, nil
}

func closeAll(handles []handle) error {
	var failures []error
	for _, h := range handles {
		failures = append(failures, unix.Close(h.fd))
	}
	return errors.Join(failures...)
}

// topmost returns the matching processes whose parent does not match: a master and its
// workers have the same name, and the master is meant.
func topmost(name string) []int {
	matching := map[int]int{}
	for _, p := range allProcesses() {
		if p.matches(name) && p.pid != os.Getpid() {
			matching[p.pid] = p.parent
		}
	}
	var top []int
	for pid, parent := range matching {
		if _, nested := matching[parent]; !nested {
			top = append(top, pid)
		}
	}
	slices.Sort(top)
	return top
}

// entry describes one process in /proc.
type entry struct {
	pid, parent int
	comm        string
	zombie      bool
}

func allProcesses() []entry {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var found []entry
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if p, ok := parseStat(string(raw)); ok {
			found = append(found, p)
		}
	}
	return found
}

// parseStat parses "12 (name) S 1 …". The name may contain blanks and brackets, so the last
// bracket counts.
func parseStat(s string) (entry, bool) {
	number, rest, ok := strings.Cut(s, " (")
	end := strings.LastIndex(rest, ") ")
	if !ok || end < 0 {
		return entry{}, false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 2 {
		return entry{}, false
	}
	pid, err1 := strconv.Atoi(number)
	parent, err2 := strconv.Atoi(fields[1])
	return entry{pid: pid, parent: parent, comm: rest[:end], zombie: fields[0] == "Z"}, err1 == nil && err2 == nil
}

// matches compares the name with the kernel's name of at most 15 bytes, the executable and
// the first argument, because each can be hidden or rewritten.
func (e entry) matches(name string) bool {
	if e.zombie {
		return false
	}
	dir := "/proc/" + strconv.Itoa(e.pid)
	if exe, err := os.Readlink(dir + "/exe"); err == nil && (exe == name || filepath.Base(exe) == name) {
		return true
	}
	cmdline, _ := os.ReadFile(dir + "/cmdline")
	first, _, _ := strings.Cut(string(cmdline), "\x00")
	first, _, _ = strings.Cut(first, ":") // "nginx: master process"
	return e.comm == name || first == name || filepath.Base(first) == name
}

func uidOf(pid int) int {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid), &st); err != nil {
		return -1
	}
	return int(st.Uid)
}
