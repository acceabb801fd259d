//go:build unix && !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithStarter does nothing: only Linux can tie a child's life to its parent's. The next
// run ends the leftovers of a killed one.
func dieWithStarter(*syscall.SysProcAttr) {}

// birth is the time at which the process started, as ps prints it.
func birth(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec,noctx // A number is no injection; ps ends at once.
	state, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(start)
}

func setApart(*syscall.SysProcAttr) {}

// stands can't be determined here; the signal has to be enough.
func (id Identity) stands() bool { return true }

// sessionOf can't be determined here; ending the group has to be enough.
func sessionOf(int) []int { return nil }

// marked can't be determined here.
func marked(string) []int { return nil }

// Mentioning can't be determined here.
func Mentioning(string) []string { return nil }
