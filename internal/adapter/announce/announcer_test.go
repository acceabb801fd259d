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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// slowServer holds every event until it is let go, and counts those it holds. It fails with
// each of its errors once.
type slowServer struct {
	letGo chan struct{}

	mu   sync.Mutex
	held int
	done []string // the notes
	errs []error
}

func (s *slowServer) create(_ context.Context, e *eventsv1.Event) error {
	s.mu.Lock()
	s.held++
	s.mu.Unlock()
	<-s.letGo
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.done = append(s.done, e.Note)
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return err
	}
	return nil
}

// about is an event of a namespace.
func about(namespace, note string) Event {
	return Event{About: &corev1.ObjectReference{Namespace: namespace, Name: "web"}, Note: note}
}

// began is an announcer that writes to the server.
func began(t *testing.T, s *slowServer) (*Announcer, *prometheus.CounterVec) {
	t.Helper()
	dropped := NewMetrics(prometheus.NewRegistry())
	a := newAnnouncer("lockstep", dropped, s.create)
	testkit.RunInBackground(t, func(ctx context.Context) { _ = a.Run(ctx) })
	return a, dropped
}

// TestEventsAreWrittenAFewAtATime: many at once would delay the patches that they
// tell of; and all of them are written in the end.
func TestEventsAreWrittenAFewAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 50
		slow := &slowServer{letGo: make(chan struct{})}
		a, _ := began(t, slow)
		for range total {
			a.Announce(about("shop", ""))
		}
		synctest.Wait()
		if slow.held != eventsAtATime {
			t.Errorf("%d are on their way at once, want %d", slow.held, eventsAtATime)
		}
		close(slow.letGo)
		synctest.Wait()
		if len(slow.done) != total {
			t.Errorf("%d were written, want %d", len(slow.done), total)
		}
	})
}

// TestWaitingEventsAreBounded: a namespace that causes more events than can be written loses its
// own oldest ones; what another namespace is told before and after arrives.
func TestWaitingEventsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowServer{letGo: make(chan struct{})}
		a, dropped := began(t, slow)
		for i := range eventsAtATime {
			a.Announce(about("first", fmt.Sprint("first ", i)))
		}
		synctest.Wait() // They are on their way.
		a.Announce(about("quiet", "quiet before"))
		for i := range 2 * maxWaiting {
			a.Announce(about("loud", fmt.Sprint("loud ", i)))
		}
		a.Announce(about("quiet", "quiet after"))
		if n := a.waiting.Len(); n != 4096 {
			t.Errorf("%d wait, want 4096", n)
		}
		close(slow.letGo)
		synctest.Wait()
		for _, note := range []string{"first 0", "first 1", "quiet before", "quiet after", fmt.Sprint("loud ", 2*maxWaiting-1)} {
			if !slices.Contains(slow.done, note) {
				t.Errorf("%q is lost", note)
			}
		}
		if slices.Contains(slow.done, "loud 0") || len(slow.done) != eventsAtATime+maxWaiting {
			t.Errorf("%d were written, the oldest %q", len(slow.done), slow.done[:5])
		}
		if n := testutil.ToFloat64(dropped.WithLabelValues("Overflow")); n != maxWaiting+2 {
			t.Errorf("%v are counted as dropped", n)
		}
	})
}

// TestEventsAreTriedAgain: while the API server does not answer, and not when it refuses. What is
// dropped is counted, unless its namespace is gone.
func TestEventsAreTriedAgain(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(eventsv1.Resource("events"), "e", errors.New("no"))
	ends := apierrors.NewForbidden(eventsv1.Resource("events"), "e", errors.New("it ends"))
	ends.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		errs                []error
		want                int
		refused, unanswered float64
	}{
		"no answer twice":      {[]error{errors.New("timeout"), errors.New("timeout")}, 3, 0, 0},
		"refused":              {[]error{refused}, 1, 1, 0},
		"no answer for long":   {slices.Repeat([]error{errors.New("timeout")}, attempts+1), attempts + 1, 0, 1},
		"no answer, then none": {[]error{errors.New("timeout"), refused}, 2, 1, 0},
		"the namespace ends":   {[]error{ends}, 1, 0, 0},
		"too many requests":    {[]error{apierrors.NewTooManyRequests("busy", 1)}, 2, 0, 0},
		"a token that ended":   {[]error{apierrors.NewUnauthorized("expired")}, 2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &slowServer{letGo: make(chan struct{}), errs: c.errs}
				close(server.letGo)
				a, dropped := began(t, server)
				a.Announce(about("shop", ""))
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(server.done) != c.want {
					t.Errorf("tried %d times, want %d", len(server.done), c.want)
				}
				for result, want := range map[string]float64{"Refused": c.refused, "Unanswered": c.unanswered} {
					if got := testutil.ToFloat64(dropped.WithLabelValues(result)); got != want {
						t.Errorf("%s is %v, want %v", result, got, want)
					}
				}
			})
		})
	}
}

// TestLongNames: the API server refuses an event whose name is longer than that of any object.
func TestLongNames(t *testing.T) {
	t.Parallel()
	a := newAnnouncer("lockstep", nil, nil)
	for _, warning := range []bool{false, true} {
		e := about("shop", "")
		e.About.Name, e.Warning = strings.Repeat("x", validation.DNS1123SubdomainMaxLength), warning
		if name := a.written(e, time.Now()).Name; len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("a warning (%t) has the name %q", warning, name)
		}
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
		a, err := NewAnnouncer(config, "lockstep", prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		testkit.RunInBackground(t, func(ctx context.Context) {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		announce := func(e Event) {
			e.About, e.Action = about.DeepCopy(), "leave"
			a.Announce(e)
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
