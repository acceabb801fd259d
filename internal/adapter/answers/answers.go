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

	all store
}

// store is a cache of values of any type. It is compiled once, not for each type of response.
type store struct {
	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]*answer
	taken   int // of the room
}

// limits are the settings of a cache.
type limits struct {
	timeout time.Duration
	room    int
	weigh   func(value any) int
	dropped func()
}

type answer struct {
	value any
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
	a, err := c.all.get(ctx, c.limits(), key, func(ctx context.Context) (any, time.Duration, error) { return ask(ctx) })
	if err != nil {
		var none T
		return none, time.Time{}, err
	}
	value, _ := a.value.(T) // An interface may be nil.
	return value, a.at, a.err
}

func (c *Cache[T]) limits() limits {
	l := limits{timeout: c.Timeout, room: c.Room, dropped: c.Dropped, weigh: func(any) int { return 1 }}
	if c.Weigh != nil {
		l.weigh = func(of any) int {
			value, _ := of.(T)
			return c.Weigh(value)
		}
	}
	return l
}

// Peek returns a response that may still be used, without requesting one.
func (c *Cache[T]) Peek(key string) (T, bool) {
	value, found := c.all.peek(key)
	is, _ := value.(T)
	return is, found
}

// Forget drops the responses that are chosen by key and time, so they are requested again. That
// includes pending ones, because they may be outdated when they arrive.
func (c *Cache[T]) Forget(chosen func(key string, at time.Time) bool) { c.all.forget(chosen) }

// get returns a response, or the caller's reason not to wait any longer.
func (c *store) get(ctx context.Context, l limits, key string, ask Ask[any]) (*answer, error) {
	c.mu.Lock()
	if a := c.kept[key]; a != nil && time.Now().Before(a.until) {
		a.used = time.Now()
		c.mu.Unlock()
		return a, nil
	}
	// Under the lock, so a request that is just ending is found either in flight or kept.
	flight := c.flights.DoChan(key, func() (any, error) { return c.ask(context.WithoutCancel(ctx), l, key, ask), nil })
	c.mu.Unlock()
	select {
	case result := <-flight:
		return result.Val.(*answer), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *store) ask(ctx context.Context, l limits, key string, ask Ask[any]) *answer {
	if l.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.timeout)
		defer cancel()
	}
	a := &answer{at: time.Now()}
	c.keep(key, a)
	value, use, err := ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	a.value, a.err, a.at = value, err, time.Now()
	a.until, a.used = a.at.Add(use), a.at
	if c.kept[key] != a { // It was forgotten meanwhile.
		return a
	}
	a.weight = l.weigh(value)
	c.taken += a.weight
	a.expiry = time.AfterFunc(use, func() { c.drop(key, a) })
	c.makeRoom(l)
	return a
}

func (c *store) keep(key string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*answer{}
	}
	c.remove(key)
	c.kept[key] = a
}

// drop removes an expired response, even if nobody requests it again.
func (c *store) drop(key string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[key] == a {
		c.remove(key)
	}
}

// remove ends the timer too, which would hold on to the response.
func (c *store) remove(key string) {
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
func (c *store) makeRoom(l limits) {
	for l.room > 0 && c.taken > l.room {
		var oldest string
		for key, a := range c.kept {
			if first := c.kept[oldest]; a.expiry != nil && (first == nil || a.used.Before(first.used)) {
				oldest = key
			}
		}
		c.remove(oldest)
		if l.dropped != nil {
			l.dropped()
		}
	}
}

func (c *store) peek(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.kept[key]
	if a == nil || a.err != nil || !time.Now().Before(a.until) {
		return nil, false
	}
	a.used = time.Now()
	return a.value, true
}

func (c *store) forget(chosen func(key string, at time.Time) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, a := range c.kept {
		if chosen(key, a.at) {
			c.remove(key)
			c.flights.Forget(key)
		}
	}
}
