package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

func dieWithStarter(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

func setApart(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
}

// birth is the boot's ID and the clock tick, counted from that boot, at which the process
// started.
func birth(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	state, _, tick := parseStat(stat)
	if ended(state) {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return tick
	}
	return strings.TrimSpace(string(boot)) + "/" + tick
}

// stands reports whether a signal has suspended the process.
func (id Identity) stands() bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/stat")
	if err != nil {
		return true
	}
	state, _, _ := parseStat(stat)
	return state == "T"
}

// ended reports whether a process in that state has ended, even if its parent has not waited
// for it yet.
func ended(state string) bool { return state == "Z" || state == "X" }

// sessionOf lists the running processes of a session.
func sessionOf(leader int) []int {
	return running(func(dir string) bool {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			return false
		}
		state, session, _ := parseStat(stat)
		return session == strconv.Itoa(leader) && !ended(state)
	})
}

// marked lists the other running processes that were started with an entry in their
// environment. The environment of an ended process is empty.
func marked(entry string) []int {
	return running(func(dir string) bool {
		environment, err := os.ReadFile(dir + "/environ")
		return err == nil && slices.Contains(strings.Split(string(environment), "\x00"), entry)
	})
}

// Mentioning lists the other processes with a text in their command line, by ID and command
// line. It finds none where command lines can't be read.
func Mentioning(text string) []string {
	var found []string
	running(func(dir string) bool {
		line, err := os.ReadFile(dir + "/cmdline")
		words := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		if err == nil && strings.Contains(words, text) {
			found = append(found, strings.TrimPrefix(dir, "/proc/")+" "+words)
		}
		return false
	})
	return found
}

// running lists the processes, other than this one, whose directory under /proc matches.
func running(wanted func(dir string) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && pid != os.Getpid() && wanted("/proc/"+e.Name()) {
			found = append(found, pid)
		}
	}
	return found
}

// parseStat returns the fields 3 (state), 6 (session) and 22 (start time) of a stat line,
// such as `4711 (a) b) S 1 4711 4711 …`. The second field is the program's name in
// parentheses and may itself contain blanks and parentheses, hence the search from the end.
func parseStat(stat []byte) (state, session, start string) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", "", ""
	}
	return string(fields[0]), string(fields[3]), string(fields[19])
}
