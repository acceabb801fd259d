package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
)

// Memory is a record of what was delivered, in whatever form.
type Memory interface {
	// Status tells how well the record can be read.
	Status() mirror.Status
	// Keys lists the workloads that something is remembered of.
	Keys() []Key
	// Wake sets the function that is called with a workload to look at again.
	Wake(func(Key))
}

// Feed calls add with every workload that has to be looked at: once for each
// that exists or is on record, as soon as cache and record are known, and then
// for each that something happened to. It returns at once and ends with the
// context.
func Feed(ctx context.Context, c *Cache, r Memory, add func(Key)) {
	go func() {
		known := func(context.Context) (bool, error) { return c.Answered() && r.Status().Answered(), nil }
		if wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, known) != nil {
			return
		}
		r.Wake(add)
		c.Wake(add)
		c.EachWorkload(func(w *Workload) { add(w.Key) })
		for _, key := range r.Keys() {
			add(key)
		}
	}()
}
