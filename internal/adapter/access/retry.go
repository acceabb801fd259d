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

// Retry calls f until it succeeds, fails for good, or the context ends, and
// returns its last error; when the context ends in the middle of an attempt, that
// is the error of the attempt before, which says more. The pauses grow from 100 ms
// to 5 s, with jitter; an API server that says how long to wait is obeyed.
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

// IsTransient reports whether an error may well be gone at the next attempt: a busy
// or absent API server, a lost connection, a write that met another one. That a
// request took too long is one too: a dial that times out looks just like a context
// that has ended, so whoever has a context asks that.
func IsTransient(err error) bool {
	var network net.Error
	var request *url.Error
	return errors.As(err, &network) || errors.As(err, &request) ||
		apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
