package labtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The lab's ports are below the range that systems use for outgoing connections. So no other
// process takes the port of an API server that a test has stopped and will start again.
const firstPort, lastPort = 20000, 29999

// FreePort returns an unused port, for a program that needs a fixed one.
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
		ports = append(ports, port)
		if len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("find %d free ports between %d and %d: none left", count, firstPort, lastPort)
}
