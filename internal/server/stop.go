package server

import (
	"context"
	"errors"
)

// leaseReleased is how the manager reports every end of its leader election, also the
// one that a stop asks for. It has no value to compare with.
const leaseReleased = "leader election lost"

// CutOffByStop reports whether err, of a process that was asked to stop, is only what the
// stop itself cuts off: a request that is given up, or the lease that is released.
func CutOffByStop(err error) bool {
	return errors.Is(err, context.Canceled) || err.Error() == leaseReleased
}
