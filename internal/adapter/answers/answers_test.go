package answers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server counts how often it is asked, and takes a second to answer.
type server struct {
	asked int
	err   error
}

func (s *server) ask(context.Context) (int, time.Duration, error) {
	s.asked++
	n, err := s.asked, s.err
	time.Sleep(time.Second)
	if err != nil {
		return 0, time.Second, err
	}
	return n, time.Minute, nil
}

// TestShared: those who ask at the same time wait for one request, later ones use its answer,
// and after its time it is asked for again and not kept in memory.
func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			c Cache[int]
			s server
		)
		get := func(want int) {
			t.Helper()
			if got, at, err := c.Get(t.Context(), "a", s.ask); got != want || err != nil || at.IsZero() {
				t.Errorf("got %d of %s, error %v, want %d", got, at, err, want)
			}
		}
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() { get(1) })
		}
		asking.Wait()
		time.Sleep(time.Minute - time.Nanosecond)
		get(1)
		if got, ok := c.Peek("a"); got != 1 || !ok {
			t.Errorf("peeking finds %d: %t", got, ok)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(c.all.kept) != 0 {
			t.Errorf("%d answers are kept after their time", len(c.all.kept))
		}
		get(2)
		s.err = errors.New("no answer")
		time.Sleep(time.Minute)
		for range 2 {
			if _, _, err := c.Get(t.Context(), "a", s.ask); !errors.Is(err, s.err) {
				t.Errorf("error is %v", err)
			}
		}
		if _, ok := c.Peek("a"); ok || s.asked != 3 {
			t.Errorf("a failure counts as an answer: %t, after %d requests", ok, s.asked)
		}
	})
}

// TestForgetWhileAwaited: an answer that is on its way when it is forgotten may be outdated.
// Who waits gets it; who asks afterwards gets another one.
func TestForgetWhileAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			c      Cache[int]
			s      server
			asking sync.WaitGroup
		)
		get := func(want int) {
			if got, _, err := c.Get(t.Context(), "a", s.ask); got != want || err != nil {
				t.Errorf("got %d, error %v, want %d", got, err, want)
			}
		}
		asking.Go(func() { get(1) })
		synctest.Wait()
		c.Forget(func(key string, _ time.Time) bool { return key == "a" })
		asking.Go(func() { get(2) })
		asking.Wait()
		get(2)
	})
}

// TestCallerThatLeaves: the request goes on for the others.
func TestCallerThatLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			c      Cache[int]
			s      server
			asking sync.WaitGroup
		)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		asking.Go(func() {
			if _, _, err := c.Get(ctx, "a", s.ask); !errors.Is(err, gone) {
				t.Errorf("error is %v", err)
			}
		})
		synctest.Wait()
		cancel(gone)
		asking.Wait()
		if got, _, err := c.Get(t.Context(), "a", s.ask); got != 1 || err != nil {
			t.Errorf("got %d, error %v", got, err)
		}
	})
}

// TestRoom: what was used longest ago is dropped first, with its timer, and never more than is
// necessary.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dropped := 0
		c := Cache[int]{Room: 10, Weigh: func(n int) int { return n }, Dropped: func() { dropped++ }}
		asked := map[string]int{}
		get := func(key string, weight int) {
			_, _, _ = c.Get(t.Context(), key, func(context.Context) (int, time.Duration, error) {
				asked[key]++
				return weight, time.Hour, nil
			})
			time.Sleep(time.Second)
		}
		get("a", 4)
		get("b", 4)
		get("a", 4)
		get("c", 2)
		if dropped != 0 || c.all.taken != 10 {
			t.Errorf("%d dropped, %d taken, while there is room", dropped, c.all.taken)
		}
		get("d", 1)
		if dropped != 1 || c.all.taken != 7 || c.all.kept["b"] != nil {
			t.Errorf("%d dropped, %d taken, want b to be dropped", dropped, c.all.taken)
		}
		get("b", 4)
		get("e", 11)
		if c.all.taken != 0 || len(c.all.kept) != 0 {
			t.Errorf("%d kept, %d taken: one that has no room alone isn't kept either", len(c.all.kept), c.all.taken)
		}
		get("a", 4)
		c.Forget(func(string, time.Time) bool { return true })
		if c.all.taken != 0 || asked["a"] != 2 || asked["b"] != 2 {
			t.Errorf("%d taken in the end, asked %v", c.all.taken, asked)
		}
		get("a", 4)
		time.Sleep(2 * time.Hour)
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		if c.all.taken != 0 {
			t.Errorf("%d taken after an hour", c.all.taken)
		}
	})
}
