package access

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Retry calls f until it succeeds, fails permanently, or the context ends, and returns its last
// error. When the context ends during an attempt, it returns the error of the attempt before,
// which is more useful. The pauses grow from 100 ms to 5 s, with jitter, and respect the API
// server's Retry-After.
func Retry(ctx context.Context, f func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 7, Cap: 5 * time.Second}
	var before error
	for {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return cmp.Or(before, err)
		case !IsTransient(err):
			return err
		}
		before = err
		pause := backoff.Step()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// IsTransient reports whether an error may be gone at the next attempt: a busy or unreachable
// API server, a lost connection, a write conflict. It includes timeouts: a dial that times out
// looks just like a context that has ended, so callers with a context have to check that.
func IsTransient(err error) bool {
	var network net.Error
	var request *url.Error
	return errors.As(err, &network) || errors.As(err, &request) ||
		apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
