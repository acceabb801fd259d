// Package answers caches responses. Concurrent callers with the same key share one request, and
// later callers its response, for as long as it may be used.
// The library shares the request, and this package keeps the response: see
// docs/decisions/0092-managed-fields-are-searched.md.
package answers

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Cache keeps responses by key. Its zero value is empty.
type Cache[T any] struct {
	// Timeout limits a request; zero means no limit.
	Timeout time.Duration
	// Room limits the sum of the weights of kept responses; zero means no limit. The least recently
	// used ones are dropped first.
	Room int
	// Weigh is the weight of a response; nil means 1 for each.
	Weigh func(T) int
	// Dropped, if set, is called when a response is dropped for want of room. It must return quickly.
	Dropped func()

	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]*answer[T]
	taken   int // of the room
}

type answer[T any] struct {
	value T
	err   error
	at    time.Time // when it arrived; while pending, when it was requested
	until time.Time // how long it may be used; zero while pending
	used  time.Time
	// weight is zero while pending, and expiry nil.
	weight int
	expiry *time.Timer
}

// Ask gets a response and how long it may be used. Its context isn't that of a single caller,
// because others wait too.
type Ask[T any] func(ctx context.Context) (value T, use time.Duration, err error)

// Get returns a response and when it arrived.
func (c *Cache[T]) Get(ctx context.Context, key string, ask Ask[T]) (T, time.Time, error) {
	c.mu.Lock()
	if a := c.kept[key]; a != nil && time.Now().Before(a.until) {
		a.used = time.Now()
		c.mu.Unlock()
		return a.value, a.at, a.err
	}
	// Under the lock, so a request that is just ending is found either in flight or kept.
	flight := c.flights.DoChan(key, func() (any, error) { return c.ask(context.WithoutCancel(ctx), key, ask), nil })
	c.mu.Unlock()
	select {
	case result := <-flight:
		a := result.Val.(*answer[T])
		return a.value, a.at, a.err
	case <-ctx.Done():
		var none T
		return none, time.Time{}, context.Cause(ctx)
	}
}

func (c *Cache[T]) ask(ctx context.Context, key string, ask Ask[T]) *answer[T] {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	a := &answer[T]{at: time.Now()}
	c.keep(key, a)
	value, use, err := ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	a.value, a.err, a.at = value, err, time.Now()
	a.until, a.used = a.at.Add(use), a.at
	if c.kept[key] != a { // It was forgotten meanwhile.
		return a
	}
	a.weight = c.weigh(value)
	c.taken += a.weight
	a.expiry = time.AfterFunc(use, func() { c.drop(key, a) })
	c.makeRoom()
	return a
}

func (c *Cache[T]) weigh(value T) int {
	if c.Weigh == nil {
		return 1
	}
	return c.Weigh(value)
}

func (c *Cache[T]) keep(key string, a *answer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*answer[T]{}
	}
	c.remove(key)
	c.kept[key] = a
}

// drop removes an expired response, even if nobody requests it again.
func (c *Cache[T]) drop(key string, a *answer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[key] == a {
		c.remove(key)
	}
}

// remove ends the timer too, which would hold on to the response.
func (c *Cache[T]) remove(key string) {
	a := c.kept[key]
	if a == nil {
		return
	}
	delete(c.kept, key)
	c.taken -= a.weight
	if a.expiry != nil {
		a.expiry.Stop()
	}
}

// makeRoom drops the least recently used responses.
func (c *Cache[T]) makeRoom() {
	for c.Room > 0 && c.taken > c.Room {
		var oldest string
		for key, a := range c.kept {
			if first := c.kept[oldest]; a.expiry != nil && (first == nil || a.used.Before(first.used)) {
				oldest = key
			}
		}
		c.remove(oldest)
		if c.Dropped != nil {
			c.Dropped()
		}
	}
}

// Peek returns a response that may still be used, without requesting one.
func (c *Cache[T]) Peek(key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.kept[key]
	if a == nil || a.err != nil || !time.Now().Before(a.until) {
		var none T
		return none, false
	}
	a.used = time.Now()
	return a.value, true
}

// Forget drops the responses that are chosen by key and time, so they are requested again. That
// includes pending ones, because they may be outdated when they arrive.
func (c *Cache[T]) Forget(chosen func(key string, at time.Time) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, a := range c.kept {
		if chosen(key, a.at) {
			c.remove(key)
			c.flights.Forget(key)
		}
	}
}
