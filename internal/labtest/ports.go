package labtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// The lab's ports are below the range that systems use for outgoing connections. So no other
// process takes the port of an API server that a test has stopped and will start again.
const firstPort, lastPort = 20000, 29999

// FreePort returns an unused port, for a program that needs a fixed one. Nobody else gets it until
// the process ends.
func FreePort(t testing.TB) int {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

// freePorts returns different unused ports.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)                 //nolint:gosec // Chance is enough here.
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)) //nolint:noctx // Listening on loopback does not wait.
		if err != nil {
			continue
		}
		defer listener.Close()
		switch taken, err := take(port); {
		case err != nil:
			return nil, fmt.Errorf("reserve a port: %w", err)
		case taken:
			ports = append(ports, port)
		}
		if len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free ports between %d and %d: none left", count, firstPort, lastPort)
}

// reserved are the ports of this process. Other processes know them by locks on a file.
//
//nolint:gochecknoglobals // What belongs to the process has to live somewhere in it.
var reserved struct {
	sync.Mutex

	ports map[int]bool
	file  *os.File
}

// take reserves a port. Otherwise a test, or one of another package, could get the same port
// before the program that it is meant for listens on it.
func take(port int) (bool, error) {
	reserved.Lock()
	defer reserved.Unlock()
	if reserved.file == nil {
		dir, err := program.Cache()
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return false, err
		}
		if reserved.file, err = os.OpenFile(filepath.Join(dir, "ports.lock"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
			return false, err
		}
		reserved.ports = map[int]bool{}
	}
	if reserved.ports[port] {
		return false, nil
	}
	one := syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(port), Len: 1}
	if err := syscall.FcntlFlock(reserved.file.Fd(), syscall.F_SETLK, &one); errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil // another process has it
	} else if err != nil {
		return false, err
	}
	reserved.ports[port] = true
	return true, nil
}
