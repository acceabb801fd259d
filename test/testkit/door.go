package testkit

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
)

// Way is where a connection leads: to an address, or to an answer before it is closed. The zero
// Way only closes it.
type Way struct{ To, Answer string }

// Door is an address where connections with TLS lead elsewhere than connections without.
type Door struct {
	Address string

	mu          sync.Mutex
	tls, plain  Way
	connections map[net.Conn]bool
}

// NewDoor opens a door for a test.
func NewDoor(t testing.TB, tls, plain Way) *Door {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{Address: listener.Addr().String(), tls: tls, plain: plain, connections: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { d.pass(connection) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		d.Lead(Way{}, Way{})
		all.Wait()
	})
	return d
}

// Lead changes the ways, and closes every connection.
func (d *Door) Lead(tls, plain Way) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tls, d.plain = tls, plain
	for connection := range d.connections {
		_ = connection.Close()
	}
}

// hold keeps a connection until Lead or release.
func (d *Door) hold(connection net.Conn) (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connections[connection] = true
	return func() {
		_ = connection.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.connections, connection)
	}
}

// way is chosen by the first byte of a connection, which is 22 with TLS.
func (d *Door) way(first byte) Way {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first == 22 {
		return d.tls
	}
	return d.plain
}

func (d *Door) pass(near net.Conn) {
	defer d.hold(near)()
	read := bufio.NewReader(near)
	first, err := read.Peek(1)
	if err != nil {
		return
	}
	way := d.way(first[0])
	if way.To == "" {
		// Unread data would reset the connection, and the answer could be lost.
		_, _ = io.CopyN(io.Discard, read, int64(read.Buffered()))
		_, _ = io.WriteString(near, way.Answer)
		return
	}
	far, err := (&net.Dialer{}).Dial("tcp", way.To)
	if err != nil {
		return
	}
	defer d.hold(far)()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	_, _ = io.Copy(far, read)
	_ = far.Close()
	back.Wait()
}
