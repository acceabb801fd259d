package imagewatch

import (
	"context"
	"maps"
	"sync"
	"time"
)

// share keeps answers for as long as they may be used, and lets all who ask the same
// meanwhile wait for one request.
type share[T any] struct {
	mu      sync.Mutex
	answers map[string]*answer[T]
	swept   time.Time
}

type answer[T any] struct {
	value T
	err   error
	at    time.Time
	until time.Time     // how long it may be used
	done  chan struct{} // closed when there is a value or an error
}

// ready tells whether there is a value or an error.
func (a *answer[T]) ready() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// question is what is asked of a share.
type question[T any] struct {
	key string
	// ask gets the answer. Its context is not that of one asker, because others wait, too.
	ask func(ctx context.Context) (T, error)
	// use is how long the answer may be used.
	use func(err error) time.Duration
}

// get returns an answer and when it was given.
func (s *share[T]) get(ctx context.Context, q question[T]) (T, time.Time, error) {
	s.mu.Lock()
	now := time.Now()
	s.sweep(now)
	a := s.answers[q.key]
	if a == nil || a.ready() && !now.Before(a.until) {
		a = &answer[T]{done: make(chan struct{})}
		if s.answers == nil {
			s.answers = map[string]*answer[T]{}
		}
		s.answers[q.key] = a
		go s.ask(context.WithoutCancel(ctx), q, a)
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.value, a.at, a.err
	case <-ctx.Done():
		var none T
		return none, time.Time{}, context.Cause(ctx)
	}
}

func (s *share[T]) ask(ctx context.Context, q question[T], a *answer[T]) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	value, err := q.ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	a.value, a.err, a.at = value, err, time.Now()
	a.until = a.at.Add(q.use(err))
	close(a.done)
}

// peek returns an answer that may still be used.
func (s *share[T]) peek(key string) (T, time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[key]
	if a == nil || !a.ready() || a.err != nil || !time.Now().Before(a.until) {
		var none T
		return none, time.Time{}, false
	}
	return a.value, a.at, true
}

// forget drops the answers whose key is chosen, so that they are asked for again: also
// those that are on their way, because they may be of before.
func (s *share[T]) forget(chosen func(key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.answers, func(key string, _ *answer[T]) bool { return chosen(key) })
}

// sweep drops what may not be used any more, now and then.
func (s *share[T]) sweep(now time.Time) {
	if now.Sub(s.swept) < time.Minute {
		return
	}
	s.swept = now
	maps.DeleteFunc(s.answers, func(_ string, a *answer[T]) bool { return a.ready() && !now.Before(a.until) })
}
