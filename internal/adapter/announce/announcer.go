package announce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/crowd"
	"github.com/lockstep-dev/lockstep/internal/retryafter"
)

const (
	// eventsAtATime limits concurrent event writes. During a rollout of 500 workloads more of them
	// would compete with the patches for the API server and delay the rollout.
	eventsAtATime = 2
	// maxWaiting limits the events that wait to be written, about 2 KB each. client-go's recorder
	// remembers all events of the last minutes, and drops those of any namespace when one has too
	// many.
	maxWaiting = 4096
	// attempts is how often writing an event is tried again while the API server does not respond, or
	// rejects every request, first after firstRetry and then with growing pauses.
	attempts   = 12
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Why an event was dropped, as a label.
const (
	droppedOverflow   = "Overflow"
	droppedRefused    = "Refused"
	droppedUnanswered = "Unanswered"
)

// An Announcer writes events, a few at a time.
type Announcer struct {
	create         func(context.Context, *eventsv1.Event) error
	reporter, host string
	dropped        *prometheus.CounterVec

	// ready counts the waiting events.
	ready   chan struct{}
	mu      sync.Mutex
	waiting *crowd.Crowd[*eventsv1.Event] // by namespace
	full    bool                          // an event was dropped since all of them were written
}

// NewAnnouncer makes an announcer that reports under the given name. It doesn't write until Run.
func NewAnnouncer(config *rest.Config, reporter string, r prometheus.Registerer) (*Announcer, error) {
	config = rest.CopyConfig(config)
	config.Wrap(retryafter.InSeconds)
	c, err := typedeventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for events: %w", err)
	}
	return newAnnouncer(reporter, NewMetrics(r), func(ctx context.Context, e *eventsv1.Event) error {
		_, err := c.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
		return err
	}), nil
}

// NewCoreAnnouncer makes an announcer for a role that allows events only in the core API group. They
// have no action then, and no related object.
func NewCoreAnnouncer(c client.Writer, reporter string, r prometheus.Registerer) *Announcer {
	return newAnnouncer(reporter, NewMetrics(r), func(ctx context.Context, e *eventsv1.Event) error {
		return c.Create(ctx, inCore(e))
	})
}

// inCore is an event in the older form, which has other times.
func inCore(e *eventsv1.Event) *corev1.Event {
	at := metav1.NewTime(e.EventTime.Time)
	return &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Type: e.Type, Reason: e.Reason, Message: e.Note,
		Source:         corev1.EventSource{Component: e.ReportingController},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
}

// NewMetrics registers the metric of dropped events.
func NewMetrics(r prometheus.Registerer) *prometheus.CounterVec {
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lockstep_dropped_events_total",
		Help: "Events that were not written, by result: Overflow (too many were waiting, so the oldest of the namespace with the most events is dropped), Refused by the API server, or Unanswered by it.",
	}, []string{"result"})
	for _, result := range []string{droppedOverflow, droppedRefused, droppedUnanswered} {
		dropped.WithLabelValues(result) // An alert sees the first one only if there was a zero before.
	}
	r.MustRegister(dropped)
	return dropped
}

func newAnnouncer(reporter string, dropped *prometheus.CounterVec, create func(context.Context, *eventsv1.Event) error) *Announcer {
	host, _ := os.Hostname()
	return &Announcer{
		create: create, reporter: reporter, host: host, dropped: dropped,
		ready: make(chan struct{}, maxWaiting), waiting: crowd.New[*eventsv1.Event](maxWaiting),
	}
}

// Announce writes the event in the background. An event that cannot be written is dropped: the log
// contains the same text.
func (a *Announcer) Announce(e Event) {
	a.add(a.written(e, time.Now()))
}

// written is the event as the API server stores it.
func (a *Announcer) written(e Event, now time.Time) *eventsv1.Event {
	reporter := cmp.Or(e.By, a.reporter)
	made := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(e.About.Name, now.UnixNano()), Namespace: e.About.Namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: reporter, ReportingInstance: reporter + "-" + a.host,
		Type: eventType(e.Warning), Reason: e.Reason, Action: e.Action, Note: ShortNote(e.Note),
		Regarding: *e.About, Related: e.related(),
	}
	if e.Warning {
		made.Name = warningName(made)
	}
	return made
}

func (a *Announcer) add(e *eventsv1.Event) {
	a.mu.Lock()
	dropped, full := a.waiting.Add(e.Namespace, e)
	first := full && !a.full
	a.full = a.full || full
	a.mu.Unlock()
	if !full {
		a.ready <- struct{}{} // It has room for all that wait.
		return
	}
	a.dropped.WithLabelValues(droppedOverflow).Inc()
	if first {
		klog.Background().Error(nil, "too many events wait to be written; the oldest of the namespace with the most events are dropped, and the log contains their text", "namespace", dropped.Namespace, "most", maxWaiting)
	}
}

// Run writes events until the context ends.
func (a *Announcer) Run(ctx context.Context) error {
	var writers sync.WaitGroup
	for range eventsAtATime {
		writers.Go(func() {
			for a.writeNext(ctx) {
			}
		})
	}
	writers.Wait()
	return nil
}

// writeNext waits for an event and writes it. It is false when the context has ended.
func (a *Announcer) writeNext(ctx context.Context) bool {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return false
	}
	a.mu.Lock()
	e, _ := a.waiting.Next()
	a.full = a.full && a.waiting.Len() > 0
	a.mu.Unlock()
	err := a.write(ctx, e)
	if err == nil || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	result := droppedUnanswered
	if isRefusal(err) {
		result = droppedRefused
	}
	a.dropped.WithLabelValues(result).Inc()
	klog.FromContext(ctx).Error(err, "cannot write an event", "about", klog.KRef(e.Regarding.Namespace, e.Regarding.Name), "reason", e.Reason)
	return true
}

// write writes an event, again and again while the API server does not respond. A warning is written
// only when the API server does not have it: after a restart the controller finds all problems
// again, and users were already notified. Nobody reads events of a namespace that is gone.
func (a *Announcer) write(ctx context.Context, e *eventsv1.Event) error {
	pause := firstRetry
	for tries := 0; ; tries++ {
		err := a.create(ctx, e)
		switch {
		case e.Type == corev1.EventTypeWarning && apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
			return nil
		case err == nil, isRefusal(err), tries == attempts:
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause = min(2*pause, lastRetry)
	}
}

// isRefusal reports whether the API server rejects this event. An API server that is busy, or that
// rejects a token until the file of the next one is read, would reject every event for a while.
func isRefusal(err error) bool {
	if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsUnauthorized(err) {
		return false
	}
	_, refused := errors.AsType[*apierrors.StatusError](err)
	return refused
}
