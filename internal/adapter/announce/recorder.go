package announce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// calmSink lets the others wait while enough events are on their way, and writes a
// warning only when the API server does not have it: a restart finds everything that
// is wrong again, and people have been told.
type calmSink struct {
	events.EventSink
	slots chan struct{}
}

// Create implements events.EventSink.
func (s *calmSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	if e.Type != corev1.EventTypeWarning {
		return s.EventSink.Create(ctx, e)
	}
	named := e.DeepCopy()
	named.Name = warningName(e)
	created, err := s.EventSink.Create(ctx, named)
	if apierrors.IsAlreadyExists(err) {
		return named, nil
	}
	return created, err
}

// RepeatEvery is how often a warning about a change that waits is told again. The API
// server keeps events for an hour, unless it is told otherwise.
const RepeatEvery = 30 * time.Minute

// warningName is the same for the same words about the same object. When the API server
// has dropped the event they are told again; those about a change that waits before.
func warningName(e *eventsv1.Event) string {
	words := string(e.Regarding.UID) + "\x00" + e.Reason + "\x00" + e.Note
	if e.Action == ActionHold {
		words += "\x00" + e.EventTime.Truncate(RepeatEvery).UTC().String()
	}
	sum := sha256.Sum256([]byte(words))
	return e.Regarding.Name + "." + hex.EncodeToString(sum[:8])
}
