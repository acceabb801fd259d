package mirror

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMain takes out the library's handlers of errors: they sleep by a time of the last
// error that all tests share, and some tests have a clock of their own.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// failing is an API server that answers everything with one error, and notes when it
// was asked for a list. A real one would not let us turn the clock.
type failing struct {
	client.WithWatch

	err error

	mu    sync.Mutex
	lists []time.Time
}

func (f *failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists = append(f.lists, time.Now())
	return f.err
}

func (f *failing) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, f.err
}

// gaps are the longest and the shortest time between two of the last attempts in half
// an hour.
func gaps(t *testing.T, err error) (longest, shortest time.Duration) {
	t.Helper()
	server := &failing{err: err}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	newNotes().Run(ctx, server, Scope{List: &corev1.ConfigMapList{}})
	server.mu.Lock()
	defer server.mu.Unlock()
	shortest = time.Hour
	for i := len(server.lists) / 2; i+1 < len(server.lists); i++ {
		gap := server.lists[i+1].Sub(server.lists[i])
		longest, shortest = max(longest, gap), min(shortest, gap)
	}
	return longest, shortest
}

// TestAnOutageIsNotWaitedOut: an API server that did not answer for a while is asked
// again within seconds, so that a workload that is made meanwhile is seen soon after.
func TestAnOutageIsNotWaitedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if longest, _ := gaps(t, errors.New("connection refused")); longest == 0 || longest > 2*longestOutage {
			t.Errorf("%s between two attempts, want at most %s", longest, 2*longestOutage)
		}
	})
}

// TestARefusalIsNotAskedForOverAndOver: what is missing for good costs next to nothing.
func TestARefusalIsNotAskedForOverAndOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
		if _, shortest := gaps(t, forbidden); shortest < afterRefusal || shortest > time.Minute {
			t.Errorf("%s between two attempts, want at least %s", shortest, afterRefusal)
		}
	})
}
