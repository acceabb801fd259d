package rollouts

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
)

// Most conflicts are with a controller's status write, and end with the next watch event.
// If one doesn't end, the watch isn't delivering events.
const firstConflict, longestConflict = 200 * time.Millisecond, time.Minute

// conflicts paces the attempts on workloads that change before our write. The pauses grow
// only while the cache shows the same version: with that version, the next attempt fails
// too.
type conflicts struct {
	mu       sync.Mutex
	pauses   workqueue.TypedRateLimiter[kube.Key]
	versions map[kube.Key]string
}

func newConflicts() *conflicts {
	return &conflicts{
		pauses:   workqueue.NewTypedItemExponentialFailureRateLimiter[kube.Key](firstConflict, longestConflict),
		versions: map[kube.Key]string{},
	}
}

// pause is how long to wait after an attempt that was decided on this copy.
func (c *conflicts) pause(w *kube.Workload) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version := w.Target.ResourceVersion; c.versions[w.Key] != version {
		c.pauses.Forget(w.Key)
		c.versions[w.Key] = version
	}
	return c.pauses.When(w.Key)
}

func (c *conflicts) forget(key kube.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses.Forget(key)
	delete(c.versions, key)
}
