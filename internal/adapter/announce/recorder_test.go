package announce

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
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
			return slices.Contains(w.Events(t, testkit.Web), "Warning Mark "+mark), "no event is written"
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
