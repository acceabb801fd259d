package kube

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// slowSink holds every event until it is let go, and counts those it holds.
type slowSink struct {
	events.EventSink
	letGo chan struct{}

	mu         sync.Mutex
	held, done int
}

func (s *slowSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.count(1, 0)
	<-s.letGo
	s.count(-1, 1)
	return e, nil
}

func (s *slowSink) count(held, done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += held
	s.done += done
}

// TestEventsAreWrittenAFewAtATime: many at once would delay the patches that they
// tell of; and all of them are written in the end.
func TestEventsAreWrittenAFewAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 50
		slow := &slowSink{letGo: make(chan struct{})}
		calm := &calmSink{EventSink: slow, slots: make(chan struct{}, eventsAtATime)}
		var group sync.WaitGroup
		for range total {
			group.Go(func() { _, _ = calm.Create(t.Context(), &eventsv1.Event{}) })
		}
		synctest.Wait()
		if slow.held != eventsAtATime {
			t.Errorf("%d are on their way at once, want %d", slow.held, eventsAtATime)
		}
		close(slow.letGo)
		group.Wait()
		if slow.done != total {
			t.Errorf("%d were written, want %d", slow.done, total)
		}
	})
}
