package identity

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
)

// cloud stands for a token service whose tokens live for twelve hours.
type cloud struct {
	asked int
	err   error
}

func (c *cloud) fetch(context.Context) (keychain.Credential, time.Time, error) {
	c.asked++
	return keychain.Credential{Password: time.Now().String()}, time.Now().Add(12 * time.Hour), c.err
}

func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			l leases
			c cloud
		)
		get := func(wantErr bool) keychain.Credential {
			t.Helper()
			got, err := l.get(t.Context(), "r", c.fetch)
			if (err != nil) != wantErr {
				t.Errorf("error is %v", err)
			}
			return got
		}
		want := func(asked int) {
			t.Helper()
			if c.asked != asked {
				t.Errorf("asked %d times, want %d", c.asked, asked)
			}
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { get(false) })
		}
		wg.Wait()
		want(1)
		first := get(false)
		time.Sleep(10 * time.Hour)
		if get(false) != first {
			t.Error("it was replaced early")
		}
		time.Sleep(time.Hour)
		if get(false) == first {
			t.Error("it was not replaced before its end")
		}
		want(2)

		// A failure is over when the cloud is back: no one waits for hours.
		c.err = errors.New("away")
		time.Sleep(11 * time.Hour)
		get(true)
		get(true)
		want(3)
		c.err = nil
		time.Sleep(time.Minute)
		get(false)
		want(4)

		// What a registry refused is replaced, and not again at once.
		l.forget("r")
		get(false)
		want(4)
		time.Sleep(2 * time.Minute)
		l.forget("r")
		get(false)
		want(5)
	})
}
