package testkit

import (
	"context"
	"sync"
	"testing"
)

// Tally counts keys, from any goroutine.
type Tally[K comparable] struct {
	mu    sync.Mutex
	times map[K]int
}

// Note counts one more.
func (y *Tally[K]) Note(key K) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.times == nil {
		y.times = map[K]int{}
	}
	y.times[key]++
}

// Times is how often the key was noted.
func (y *Tally[K]) Times(key K) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.times[key]
}

// RunInBackground runs a function until the test ends, and waits for its end.
func RunInBackground(t testing.TB, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}
