package safe_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestFlapScaled: two writers fight over a Secret every ten seconds for an hour, with all periods a
// hundredth of their defaults. The workloads slow down, people see it, and the last version arrives.
func TestFlapScaled(t *testing.T) {
	t.Parallel()
	twice(t, []int{4}, func(s *scene) {
		t := s.t
		s.Create(t, testkit.Secret("db", "key", "0"))
		for n := range 3 {
			s.create(t, user(name(n+1), "", "db"))
		}
		s.awaitComplete(t)
		s.run(t, "--settle", "100ms", "--quiet", "50ms", "--max-delay", "600ms", "--damping", "300ms", "--max-damping", "9s")
		for n := range 3 {
			s.Annotate(t, name(n+1), settings.Quiet)
		}
		changes, stop := s.fight(t, "db")
		const hour = 36 * time.Second
		begun, damped := time.Now(), false
		s.await(t, func() (bool, string) {
			damped = damped || strings.Contains(s.lockstep(t, "status"), "Damped")
			return damped && time.Since(begun) > hour, fmt.Sprintf("after %s a status has shown that the changes are damped: %t", time.Since(begun), damped)
		})
		stop()
		s.SetSecret(t, "db", "key", "the end")
		s.witness.Pass(t) // it has its own sources: the controller has seen the last version by then
		s.await(t, func() (bool, string) {
			for name, e := range s.entries(t) {
				if given := e.Inputs[input.Secret("db")]; given.Due != "" || !e.Decision.IsZero() && e.Decision.Reason != input.InStep {
					return false, fmt.Sprintf("the last version isn't delivered to %s: %+v", name, e.Decision)
				}
			}
			return true, ""
		})
		s.fleet.catchUp(t, s.World, s.Namespace)
		for workload, count := range s.fleet.rollouts() {
			if strings.Contains(workload, "/user-") && (count >= 50 || count < 2) {
				t.Errorf("%s was rolled out %d times for %d changes, want more than once and fewer than 50", workload, count, changes.Load())
			}
		}
	})
}

// fight lets two writers change a Secret in turns until the returned function is called.
func (s *scene) fight(t *testing.T, secret string) (changes *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes = &atomic.Int64{}
	var writing sync.WaitGroup
	writing.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			o := testkit.Secret(secret, "key", "")
			o.SetNamespace(s.Namespace)
			patch := fmt.Sprintf(`{"stringData": {"key": "writer %d"}}`, changes.Add(1)%2)
			if err := s.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil && ctx.Err() == nil {
				t.Errorf("change the Secret: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	stop = func() {
		cancel()
		writing.Wait()
	}
	t.Cleanup(stop)
	return changes, stop
}
