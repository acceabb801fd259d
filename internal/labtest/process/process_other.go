//go:build unix && !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithStarter does nothing: only Linux can tie a child's life to its
// parent's. What a killed run leaves behind is ended by the next one.
func dieWithStarter(*syscall.SysProcAttr) {}

// birth is the time at which the process began, as ps prints it.
func birth(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec,noctx // A number is no injection; ps ends at once.
	state, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(start)
}

func setApart(*syscall.SysProcAttr) {}

// stands cannot be asked here; the signal has to do.
func (id Identity) stands() bool { return true }

// sessionOf cannot be asked here; ending the group has to do.
func sessionOf(int) []int { return nil }

// marked cannot be asked here.
func marked(string) []int { return nil }

// Mentioning cannot be asked here.
func Mentioning(string) []string { return nil }
