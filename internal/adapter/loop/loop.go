// Package loop runs a reconciler on the leader, from a queue that a feed fills.
package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dev/lockstep/internal/core/turns"
)

const (
	// timeout frees a worker from an API server that accepts requests and never responds.
	timeout = time.Minute
	// Failures are retried after firstPause, and finally every longestPause.
	firstPause, longestPause = 500 * time.Millisecond, time.Minute
)

// share is how many of the workers a namespace can have.
func share(workers int) int { return max(1, workers/4) }

// Key identifies a reconciled object.
type Key interface {
	comparable
	// Log is the key as the value of a log attribute.
	Log() string
}

// Options of a loop.
type Options[K Key] struct {
	Name       string
	Workers    int
	Reconciler reconcile.TypedReconciler[K]
	// NamespaceOf names the tenant of a key. The queue serves tenants in turn.
	NamespaceOf func(K) string
	// About is what a key identifies, for the log: "workload".
	About string
	Log   logr.Logger
	// Feed adds keys to the queue until the context ends.
	Feed func(ctx context.Context, add func(K))
}

// Add adds the loop to the manager, which waits for its end.
func Add[K Key](mgr ctrl.Manager, o Options[K]) error {
	c, err := controller.NewTyped(o.Name, mgr, controller.TypedOptions[K]{
		// The library requires unique names in a process; tests run several managers in one.
		SkipNameValidation:      new(true),
		Reconciler:              o.Reconciler,
		MaxConcurrentReconciles: o.Workers,
		ReconciliationTimeout:   timeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstPause, longestPause),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
			return newQueue(name, limiter, turns.New(share(o.Workers), o.NamespaceOf))
		},
		LogConstructor: func(key *K) logr.Logger {
			// The library's own log messages are for debugging.
			if key == nil {
				return o.Log.V(1)
			}
			return o.Log.V(1).WithValues(o.About, (*key).Log())
		},
	})
	if err != nil {
		return fmt.Errorf("set up the loop %s: %w", o.Name, err)
	}
	queue := make(chan func(K), 1)
	err = c.Watch(source.TypedFunc[K](func(_ context.Context, q workqueue.TypedRateLimitingInterface[K]) error {
		queue <- q.Add
		return nil
	}))
	if err != nil {
		return fmt.Errorf("set up the loop %s: %w", o.Name, err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case add := <-queue:
			o.Feed(ctx, add)
		case <-ctx.Done():
		}
		return nil
	}))
}

// newQueue is the library's queue with another order.
func newQueue[K Key](name string, limiter workqueue.TypedRateLimiter[K], order *turns.Turns[K]) workqueue.TypedRateLimitingInterface[K] {
	inTurn := queue[K]{workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: order}), order}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Name: name, Queue: inTurn})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name, DelayingQueue: delaying})
}

// InTurn makes a queue for a single worker that serves namespaces in turn.
func InTurn[K comparable](namespaceOf func(K) string) workqueue.TypedInterface[K] {
	order := turns.New(1, namespaceOf)
	return queue[K]{workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: order}), order}
}

// queue reports to its order what is done.
type queue[K comparable] struct {
	workqueue.TypedInterface[K]
	turns *turns.Turns[K]
}

// Done implements workqueue.TypedInterface. The worker that calls it asks for another key next,
// so nobody has to be woken for a namespace that may have a worker again.
func (q queue[K]) Done(key K) {
	q.turns.Done(key)
	q.TypedInterface.Done(key)
}
