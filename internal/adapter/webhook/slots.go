package webhook

import (
	"net"
	"net/http"
	"time"
)

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

// enter reserves a slot for reading the body of a request, and returns how to leave it.
func (e *endpoint) enter(w http.ResponseWriter, r *http.Request, proven bool) (leave func(), ok bool) {
	if !proven {
		return e.enterUnchecked(w, r), true
	}
	if c, isConn := r.Context().Value(connectionKey{}).(net.Conn); isConn {
		e.connection(c, http.StateClosed) // It isn't a stranger's any more.
	}
	select {
	case e.reading <- struct{}{}:
		return func() { <-e.reading }, true
	default:
		return nil, false
	}
}

// enterUnchecked reserves a slot for a request whose signature can only be checked when its body was
// read. If all are taken, another one ends.
func (e *endpoint) enterUnchecked(w http.ResponseWriter, r *http.Request) (leave func()) {
	own := http.NewResponseController(w)
	// Before it can be ended: a later deadline would let it go on.
	_ = own.SetReadDeadline(time.Now().Add(bodyTimeout))
	e.mu.Lock()
	defer e.mu.Unlock()
	if slowest, full := e.unchecked.Add(host(r.RemoteAddr), own); full {
		_ = slowest.SetReadDeadline(time.Now())
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unchecked.Remove(own)
	}
}

// connection counts the connections of strangers. If there are too many, it closes another one.
func (e *endpoint) connection(c net.Conn, state http.ConnState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state {
	case http.StateNew:
		if idlest, full := e.strangers.Add(host(c.RemoteAddr().String()), c); full {
			_ = idlest.Close()
		}
	case http.StateClosed, http.StateHijacked:
		e.strangers.Remove(c)
	case http.StateActive, http.StateIdle:
	}
}

// host is an address without its port.
func host(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}
