package reload_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// counter counts the changes of Deployments' pod templates. A watch delivers every
// write, so none is missed. (The API server's own count, the generation, counts
// the annotations of Deployments too; revisions are counted by a controller that
// may take two changes for one.)
type counter struct {
	mu        sync.Mutex
	seen      map[types.UID]uint64 // resource version
	templates map[types.UID]string
	changes   map[types.UID]int
}

func newCounter(t testing.TB, w *testkit.World) *counter {
	t.Helper()
	c := &counter{seen: map[types.UID]uint64{}, templates: map[types.UID]string{}, changes: map[types.UID]int{}}
	events, err := testkit.NewClient(t, w.Cluster.Kubeconfig()).Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(w.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if d, ok := event.Object.(*appsv1.Deployment); ok && event.Type != watch.Deleted {
				c.note(d)
			}
		}
	}()
	return c
}

func (c *counter) note(d *appsv1.Deployment) {
	text, err := json.Marshal(d.Spec.Template)
	version, problem := strconv.ParseUint(d.ResourceVersion, 10, 64)
	if err != nil || problem != nil {
		return // then rollouts waits for it in vain, and says so
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.templates[d.UID]; known && before != string(text) {
		c.changes[d.UID]++
	}
	c.templates[d.UID], c.seen[d.UID] = string(text), version
}

// rollouts is how often the template was changed until this copy was read.
func (c *counter) rollouts(t testing.TB, o client.Object) int {
	t.Helper()
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		count = c.changes[o.GetUID()]
		return c.seen[o.GetUID()] >= version, fmt.Sprintf("the watch has not shown %s at %d", o.GetName(), version)
	})
	return count
}
