package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func dieWithStarter(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

func setApart(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID
}

// birth is the boot's id and the clock tick, counted from that boot, at which
// the process began.
func birth(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	state, tick := parseStat(stat)
	if state == "Z" || state == "X" {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return tick
	}
	return strings.TrimSpace(string(boot)) + "/" + tick
}

// stands tells whether the process was stopped by a signal.
func (id Identity) stands() bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/stat")
	if err != nil {
		return true
	}
	state, _ := parseStat(stat)
	return state == "T"
}

// parseStat returns the fields 3 (state) and 22 (start time) of a stat line,
// such as `4711 (a) b) S 1 4711 …`. The second field is the program's name in
// parentheses and may itself hold blanks and parentheses, hence the search from
// the end.
func parseStat(stat []byte) (state, start string) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", ""
	}
	return string(fields[0]), string(fields[19])
}
