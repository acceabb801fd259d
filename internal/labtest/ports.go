package labtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
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
		if take(port) {
			ports = append(ports, port)
		}
		if len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free ports between %d and %d: none left", count, firstPort, lastPort)
}

// reserved holds a UDP port for each port that was given out, until the process ends.
//
//nolint:gochecknoglobals // What belongs to the process has to live somewhere in it.
var reserved struct {
	sync.Mutex

	ports []net.PacketConn
}

// take reserves a port, by taking the UDP port with the same number on an address that nothing else
// uses. Otherwise another test, in this process or another one, could get the port before the
// program that it is meant for listens on it.
func take(port int) bool {
	held, err := net.ListenPacket("udp4", "127.0.77.1:"+strconv.Itoa(port)) //nolint:noctx // As above.
	if err != nil {
		return errors.Is(err, syscall.EADDRNOTAVAIL) // macOS has only 127.0.0.1; chance has to do.
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.ports = append(reserved.ports, held)
	return true
}
