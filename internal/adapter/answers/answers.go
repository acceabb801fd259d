// Package answers knows what was asked lately. Callers who ask the same at the same time share
// one request, and later ones its answer, for as long as it may be used.
package answers

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Cache keeps answers by what was asked. Its zero value is empty.
type Cache[T any] struct {
	// Timeout bounds a request; zero does not.
	Timeout time.Duration

	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]*answer[T]
}

type answer[T any] struct {
	value T
	err   error
	at    time.Time // when it arrived; while it is awaited, when it was asked for
	until time.Time // how long it may be used; zero while it is awaited
}

// Ask gets an answer, and says how long it may be used. Its context is not that of one
// caller, because others wait too.
type Ask[T any] func(ctx context.Context) (value T, use time.Duration, err error)

// Get returns an answer and when it arrived.
func (c *Cache[T]) Get(ctx context.Context, key string, ask Ask[T]) (T, time.Time, error) {
	c.mu.Lock()
	if a := c.kept[key]; a != nil && time.Now().Before(a.until) {
		c.mu.Unlock()
		return a.value, a.at, a.err
	}
	// Under the lock, because a request that ends now must be found: on its way or kept.
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
	a.until = a.at.Add(use)
	time.AfterFunc(use, func() { c.drop(key, a) })
	return a
}

func (c *Cache[T]) keep(key string, a *answer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*answer[T]{}
	}
	c.kept[key] = a
}

// drop removes an answer whose time is over, whether anyone asks again or not.
func (c *Cache[T]) drop(key string, a *answer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[key] == a {
		delete(c.kept, key)
	}
}

// Peek returns an answer that may still be used, and asks for none.
func (c *Cache[T]) Peek(key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.kept[key]
	if a == nil || a.err != nil || !time.Now().Before(a.until) {
		var none T
		return none, false
	}
	return a.value, true
}

// Forget drops the answers that are chosen by key and time, so they are asked for again. That
// includes those that are awaited, because they may be outdated when they arrive.
func (c *Cache[T]) Forget(chosen func(key string, at time.Time) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.kept, func(key string, a *answer[T]) bool {
		if !chosen(key, a.at) {
			return false
		}
		c.flights.Forget(key)
		return true
	})
}
