package access

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// blackHole is how a dial ends that nobody answers.
func blackHole(t *testing.T) error {
	t.Helper()
	_, err := (&net.Dialer{Deadline: time.Now().Add(-time.Second)}).DialContext(t.Context(), "tcp", "192.0.2.1:443")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a dial that takes too long ends with %v, which is no longer like the end of a context", err)
	}
	return err
}

// TestRetryReturnsWhatSaysMost: an attempt that the context cuts short says nothing
// of why the ones before it failed.
func TestRetryReturnsWhatSaysMost(t *testing.T) {
	t.Parallel()
	type attempt = func(context.Context) error
	var (
		passing = apierrors.NewServiceUnavailable("busy")
		later   = apierrors.NewTooManyRequests("later", 3600)
		final   = apierrors.NewBadRequest("never")
		dialled = blackHole(t)
		hang    = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		say     = func(err error) attempt {
			return func(context.Context) error { return err }
		}
	)
	cases := map[string]struct {
		attempts []attempt
		want     error
	}{
		"success after a failure":    {[]attempt{say(passing), say(nil)}, nil},
		"fails for good":             {[]attempt{say(passing), say(final)}, final},
		"nobody answers a dial":      {[]attempt{say(dialled), say(nil)}, nil},
		"cut short at once":          {[]attempt{hang}, context.DeadlineExceeded},
		"cut short after a failure":  {[]attempt{say(passing), hang}, passing},
		"cut short during the pause": {[]attempt{say(later)}, later},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				n := 0
				err := Retry(ctx, func(ctx context.Context) error {
					n++
					return c.attempts[n-1](ctx)
				})
				if !errors.Is(err, c.want) {
					t.Errorf("error is %v after %d attempts, want %v", err, n, c.want)
				}
			})
		})
	}
}
