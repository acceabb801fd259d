package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identity permanently identifies one process. The system reuses a process ID, but not
// together with the process's start time.
type Identity struct {
	PID   int    `json:"pid"`
	Birth string `json:"birth"` // opaque; empty when the process was gone already
}

// Identify describes the process that has the given id now.
func Identify(pid int) Identity { return Identity{PID: pid, Birth: birth(pid)} }

// Self identifies this process.
func Self() Identity { return Identify(os.Getpid()) }

// String is the form that ParseIdentity parses.
func (id Identity) String() string { return fmt.Sprintf("%d %s", id.PID, id.Birth) }

// ParseIdentity parses an identity such as "4711 <birth>".
func ParseIdentity(text string) (Identity, error) {
	number, birth, _ := strings.Cut(text, " ")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return Identity{}, fmt.Errorf("read the identity %q: %w", text, err)
	}
	return Identity{PID: pid, Birth: birth}, nil
}

// Alive reports whether this process still runs. A process that has ended but that its
// parent has not waited for yet doesn't count.
func (id Identity) Alive() bool {
	return id.PID > 0 && id.Birth != "" && birth(id.PID) == id.Birth
}

// replaced reports whether another process has the ID now.
func (id Identity) replaced() bool {
	now := birth(id.PID)
	return now != "" && now != id.Birth
}

// Kill ends the process and its session with SIGKILL and waits until it is gone. It does
// nothing when the process is gone, or another process has its ID.
func (id Identity) Kill() error {
	if !id.Alive() {
		return nil
	}
	if err := EndSession(id); err != nil {
		return err
	}
	return endAll(func() []int {
		if id.Alive() {
			return []int{id.PID}
		}
		return nil
	})
}
