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
	// eventsAtATime limits concurrent event writes. The library writes all events at once, and
	// during a rollout of 500 workloads those writes would compete with the patches for the API
	// server and delay the rollout.
	eventsAtATime = 2
	// attempts is how often writing an event is tried while the API server does not respond,
	// first after firstRetry and then with growing pauses.
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

// NewRecorder makes a recorder that reports under the given name. It doesn't write until Run.
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

// calmSink writes events a few at a time, and a warning only when the API server does not have
// it: after a restart the controller finds all problems again, and users were already notified.
type calmSink struct {
	events.EventSink
	// waiting holds the events to write. The library keeps a goroutine for each event until it
	// is written, and in a rollout of 5,000 workloads most of them would wait.
	waiting workqueue.TypedRateLimitingInterface[*eventsv1.Event]
}

func newCalmSink(to events.EventSink) *calmSink {
	retries := workqueue.NewTypedItemExponentialFailureRateLimiter[*eventsv1.Event](firstRetry, lastRetry)
	return &calmSink{EventSink: to, waiting: workqueue.NewTypedRateLimitingQueue(retries)}
}

// Create implements events.EventSink. Only an event that is known to repeat is written
// synchronously: the library needs to know whether it exists.
func (s *calmSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	if e.Series != nil {
		return s.write(ctx, e)
	}
	s.waiting.Add(e)
	return e, nil
}

// run writes waiting events until the context ends.
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

// RepeatEvery is how often a warning about a waiting change is repeated. By default the API
// server keeps events for an hour.
const RepeatEvery = 30 * time.Minute

// warningName is the same for the same text about the same object. When the API server has
// dropped the event, it is written again; a warning about a waiting change is repeated earlier.
func warningName(e *eventsv1.Event) string {
	words := string(e.Regarding.UID) + "\x00" + e.Reason + "\x00" + e.Note
	if e.Action == ActionHold {
		words += "\x00" + e.EventTime.Truncate(RepeatEvery).UTC().String()
	}
	sum := sha256.Sum256([]byte(words))
	return e.Regarding.Name + "." + hex.EncodeToString(sum[:8])
}
