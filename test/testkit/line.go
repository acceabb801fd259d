package testkit

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Line is a connection to the API server that can be cut and frozen without affecting the
// API server, which other tests use.
type Line struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	cut     bool
	frozen  chan struct{} // closed when the line is not frozen
	streams map[net.Conn]struct{}
}

// NewLine opens a line to the API server of a kubeconfig. It returns a kubeconfig
// that goes through the line.
func NewLine(t testing.TB, kubeconfig, server string) (line *Line, through string) {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	line = NewLineTo(t, target.Host)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	through = filepath.Join(t.TempDir(), "kubeconfig")
	moved := strings.ReplaceAll(string(text), target.Host, line.Address())
	if err := os.WriteFile(through, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	return line, through
}

// NewLineTo opens a line to a server at an address.
func NewLineTo(t testing.TB, server string) *Line {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	line := &Line{listener: listener, server: server, frozen: make(chan struct{}), streams: map[net.Conn]struct{}{}}
	close(line.frozen)
	go line.serve()
	t.Cleanup(func() {
		line.Thaw()
		line.Cut()
		_ = listener.Close()
	})
	return line
}

// Address is the address of the near end. It stays the same whatever happens to the line:
// the listener stays open, so no other process can take its port.
func (l *Line) Address() string { return l.listener.Addr().String() }

// Cut ends every connection and refuses new ones.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.streams {
		_ = c.Close()
	}
}

// Mend lets connections through again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// Freeze keeps connections open but doesn't pass anything on.
func (l *Line) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = make(chan struct{})
}

// Thaw lets everything through again, including held data.
func (l *Line) Thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.frozen:
	default:
		close(l.frozen)
	}
}

func (l *Line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.connect(near)
	}
}

func (l *Line) connect(near net.Conn) {
	defer near.Close()
	if !l.keep(near) {
		return
	}
	defer l.drop(near)
	far, err := (&net.Dialer{}).Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.keep(far) {
		return
	}
	defer l.drop(far)
	var both sync.WaitGroup
	both.Go(func() { l.copy(far, near) })
	both.Go(func() { l.copy(near, far) })
	both.Wait()
}

// copy moves bytes while the line is not frozen, and closes the other end at
// the end of the stream.
func (l *Line) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		frozen := l.frozen
		l.mu.Unlock()
		<-frozen
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *Line) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.streams[c] = struct{}{}
	return true
}

func (l *Line) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, c)
}
