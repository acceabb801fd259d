package announce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// slowSink holds every event until it is let go, and counts those it holds. It fails with
// each of its errors once.
type slowSink struct {
	events.EventSink
	letGo chan struct{}

	mu         sync.Mutex
	held, done int
	errs       []error
}

func (s *slowSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.count(1, 0)
	<-s.letGo
	s.count(-1, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	return e, nil
}

func (s *slowSink) count(held, done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += held
	s.done += done
}

// TestEventsAreWrittenAFewAtATime: many at once would delay the patches that they
// tell of; and all of them are written in the end. Meanwhile none of them holds up the
// library, which has a goroutine for each.
func TestEventsAreWrittenAFewAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 50
		slow := &slowSink{letGo: make(chan struct{})}
		calm := newCalmSink(slow)
		testkit.RunInBackground(t, calm.run)
		for range total {
			if _, err := calm.Create(t.Context(), &eventsv1.Event{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if slow.held != eventsAtATime {
			t.Errorf("%d are on their way at once, want %d", slow.held, eventsAtATime)
		}
		close(slow.letGo)
		synctest.Wait()
		if slow.done != total {
			t.Errorf("%d were written, want %d", slow.done, total)
		}
	})
}

// TestEventsAreTriedAgain: while the API server does not answer, and not when it refuses.
func TestEventsAreTriedAgain(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(eventsv1.Resource("events"), "e", errors.New("no"))
	for name, c := range map[string]struct {
		errs []error
		want int
	}{
		"no answer twice":      {[]error{errors.New("timeout"), errors.New("timeout")}, 3},
		"refused":              {[]error{refused}, 1},
		"no answer for long":   {slices.Repeat([]error{errors.New("timeout")}, 99), attempts + 1},
		"no answer, then none": {[]error{errors.New("timeout"), refused}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sink := &slowSink{letGo: make(chan struct{}), errs: c.errs}
				close(sink.letGo)
				calm := newCalmSink(sink)
				testkit.RunInBackground(t, calm.run)
				if _, err := calm.Create(t.Context(), &eventsv1.Event{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if sink.done != c.want {
					t.Errorf("tried %d times, want %d", sink.done, c.want)
				}
			})
		})
	}
}

// TestWarningsAreWrittenOnce: each process has its own idea of what was told, and the
// API server is asked.
func TestWarningsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	d := w.Deployment(t, testkit.Web)
	about := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.Namespace, Name: d.Name, UID: d.UID}
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for process := range 2 {
		r, err := NewRecorder(config, "lockstep")
		if err != nil {
			t.Fatal(err)
		}
		testkit.RunInBackground(t, func(ctx context.Context) {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		announce := func(e Event) {
			e.About, e.Action = about.DeepCopy(), "leave"
			// The library takes events of one reason for one that repeats.
			e.About.ResourceVersion = e.Note
			NewAnnouncer(r).Announce(e)
		}
		mark := fmt.Sprint("mark ", process)
		labtest.Eventually(t, testkit.Patience, func() (bool, string) { // until it runs
			announce(Event{Warning: true, Reason: "Mark", Note: mark})
			events := w.Events(t, testkit.Web)
			return slices.Contains(events, "Warning Mark "+mark), fmt.Sprintf("the recorder hasn't written the event %q; the events are %q", mark, events)
		})
		announce(Event{Warning: true, Reason: "InvalidAnnotation", Note: "the same"})
		announce(Event{Warning: true, Reason: "InvalidAnnotation", Note: fmt.Sprint("another ", process)})
		announce(Event{Reason: "Reloaded", Note: "again"})
		w.AwaitEvent(t, testkit.Web, fmt.Sprint("another ", process))
	}
	want := map[string]int{"Warning InvalidAnnotation the same": 1, "Warning InvalidAnnotation another 0": 1, "Warning InvalidAnnotation another 1": 1, "Normal Reloaded again": 2}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := map[string]int{}
		for _, note := range w.Events(t, testkit.Web) {
			if !strings.Contains(note, " Mark ") {
				got[note]++
			}
		}
		return maps.Equal(got, want), fmt.Sprintf("events %v, want %v", got, want)
	})
}
