package kube

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// eventsAtATime bounds the events that are written in parallel. The library
// writes all that it has at once, and when 500 workloads are moved those writes
// compete with the patches for the API server: the news would delay the event.
const eventsAtATime = 2

// Recorder writes events, a few at a time.
type Recorder struct {
	events.EventRecorder
	broadcaster events.EventBroadcaster
}

// NewRecorder makes a recorder that speaks under the given name. It writes
// nothing until Run.
func NewRecorder(config *rest.Config, name string) (*Recorder, error) {
	c, err := typedeventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for events: %w", err)
	}
	sink := &calmSink{EventSink: &events.EventSinkImpl{Interface: c}, slots: make(chan struct{}, eventsAtATime)}
	b := events.NewBroadcaster(sink)
	return &Recorder{EventRecorder: b.NewRecorder(scheme.Scheme, name), broadcaster: b}, nil
}

// Run writes events until the context ends.
func (r *Recorder) Run(ctx context.Context) error {
	defer r.broadcaster.Shutdown()
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	<-ctx.Done()
	return nil
}

// calmSink lets the others wait while enough events are on their way.
type calmSink struct {
	events.EventSink
	slots chan struct{}
}

// Create implements events.EventSink.
func (s *calmSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	return s.EventSink.Create(ctx, e)
}
