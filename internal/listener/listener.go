// Package listener knows where a program listens, and which flag or variable sets that address.
package listener

import (
	"errors"
	"fmt"
	"net"
)

// Address is where a program listens.
type Address struct {
	// Value is host:port or :port.
	Value string
	// Setting is the flag or the environment variable of the front end that sets it:
	// "--metrics-addr" or "HEALTH_PORT".
	Setting string
}

// Check reports a value that can't be an address.
func (a Address) Check() error {
	if _, _, err := net.SplitHostPort(a.Value); err != nil {
		return fmt.Errorf("%s %q: want host:port or :port", a.Setting, a.Value)
	}
	return nil
}

// Listen listens for what the address serves: "metrics". An error names the setting, whatever its
// cause.
func (a Address) Listen(served string) (net.Listener, error) {
	listener, err := net.Listen("tcp", a.Value) //nolint:noctx // Nothing is waited for.
	if err == nil {
		return listener, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // it repeats the address otherwise
	}
	return nil, fmt.Errorf("listen for %s on %s: %w; change %s", served, a.Value, err, a.Setting)
}
