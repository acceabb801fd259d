package announce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// eventsAtATime bounds the events that are written in parallel. The library
	// writes all that it has at once, and when 500 workloads are moved those writes
	// compete with the patches for the API server: the news would delay the event.
	eventsAtATime = 2
	// attempts is how often an event is tried while the API server does not answer, at
	// first after firstRetry and then ever more rarely.
	attempts   = 12
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Recorder writes events, a few at a time.
type Recorder struct {
	events.EventRecorder
	broadcaster events.EventBroadcaster
	sink        *calmSink
}

// NewRecorder makes a recorder that speaks under the given name. It writes
// nothing until Run.
func NewRecorder(config *rest.Config, name string) (*Recorder, error) {
	c, err := typedeventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for events: %w", err)
	}
	sink := newCalmSink(&events.EventSinkImpl{Interface: c})
	b := events.NewBroadcaster(sink)
	return &Recorder{EventRecorder: b.NewRecorder(scheme.Scheme, name), broadcaster: b, sink: sink}, nil
}

// Run writes events until the context ends.
func (r *Recorder) Run(ctx context.Context) error {
	defer r.broadcaster.Shutdown()
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	r.sink.run(ctx)
	return nil
}

// calmSink writes events a few at a time, and a warning only when the API server does not
// have it: a restart finds everything that is wrong again, and people have been told.
type calmSink struct {
	events.EventSink
	// waiting are those that are to be written. The library has a goroutine for each event
	// until it is written, and when 5,000 workloads are moved at once most of them wait.
	waiting workqueue.TypedRateLimitingInterface[*eventsv1.Event]
}

func newCalmSink(to events.EventSink) *calmSink {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[*eventsv1.Event](firstRetry, lastRetry)
	return &calmSink{EventSink: to, waiting: workqueue.NewTypedRateLimitingQueue(retries)}
}

// Create implements events.EventSink. Only an event that is known to repeat is written
// at once: the library has to hear whether it is there.
func (s *calmSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if e.Series != nil {
		return s.write(ctx, e)
	}
	s.waiting.Add(e)
	return e, nil
}

// run writes what waits until the context ends.
func (s *calmSink) run(ctx context.Context) {
	var writers sync.WaitGroup
	for range eventsAtATime {
		writers.Go(func() {
			for s.writeNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	s.waiting.ShutDown()
	writers.Wait()
}

// writeNext is false when there is nothing more to write.
func (s *calmSink) writeNext(ctx context.Context) bool {
	e, ended := s.waiting.Get()
	if ended || ctx.Err() != nil {
		return false
	}
	defer s.waiting.Done(e)
	_, err := s.write(ctx, e)
	_, refused := errors.AsType[*apierrors.StatusError](err)
	if err != nil && !refused && s.waiting.NumRequeues(e) < attempts {
		s.waiting.AddRateLimited(e)
		return true
	}
	s.waiting.Forget(e)
	if err != nil {
		klog.FromContext(ctx).Error(err, "an event is not written", "about", klog.KRef(e.Regarding.Namespace, e.Regarding.Name), "reason", e.Reason)
	}
	return true
}

func (s *calmSink) write(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
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
