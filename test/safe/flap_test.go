package safe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
		damped := false
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		const hour = 36 * time.Second
		changes := 0
		for begin := time.Now(); time.Since(begin) < hour; changes++ {
			<-tick.C
			s.revive(t)
			s.SetSecret(t, "db", "key", fmt.Sprint("writer ", changes%2))
			if !damped && changes%10 == 9 {
				damped = strings.Contains(s.lockstep(t, "status"), "Damped")
			}
		}
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
				t.Errorf("%s was rolled out %d times for %d changes, want more than once and fewer than 50", workload, count, changes)
			}
		}
		if !damped {
			t.Error("no status showed that the changes are damped")
		}
	})
}
