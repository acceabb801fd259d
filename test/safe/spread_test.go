package safe_test

import "testing"

// TestBudget: a ConfigMap that sixty workloads use never has more than five of them rolling. The
// change goes to one workload, then to two, then to four, and reaches each of them once.
func TestBudget(t *testing.T) {
	t.Parallel()
	twice(t, []int{1, 9, 30}, func(s *scene) {
		t := s.t
		const all, budget = 60, 5
		s.users(t, all)
		s.run(t, "--max-rolling", "5", "--settle", "100ms")
		s.SetConfig(t, "app", "key", "2")
		next := version("app", "2")
		s.awaitUsers(t, next, all)
		s.awaitComplete(t)
		s.checkRollouts(t, "one change", 1)
		if most := s.fleet.mostRolling(next); most > budget || most < 1 {
			t.Errorf("%d workloads were rolling at the same time, want some, and at most %d", most, budget)
		}
		s.checkSteps(t, next)
	})
}

// checkSteps: a step begins when all earlier workloads have completed.
func (s *scene) checkSteps(t *testing.T, version string) {
	t.Helper()
	for i, step := range s.fleet.begun(version) {
		started := i + 1
		for size, sum := 1, 1; size <= 4; size, sum = 2*size, sum+2*size {
			if step.completed < sum && started > sum {
				t.Fatalf("%s is workload %d to begin, after only %d had completed", step.name, started, step.completed)
			}
		}
	}
}

// TestBadVersionReachesOne: content that breaks every workload reaches one of twelve, even when it
// changes before any workload was seen healthy for the settle time.
func TestBadVersionReachesOne(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		s.users(t, 12)
		s.run(t, "--settle", "3s")
		s.crash(everywhere)
		s.SetConfig(t, "app", "key", "bad")
		bad := version("app", "bad")
		s.awaitEvent(t, "app", "Warning VersionStopped")
		for n := range 12 {
			if got := s.fleet.users(bad); len(got) == 0 || got[0] != name(n+1) {
				s.awaitEvent(t, name(n+1), "VersionStopped", "configmap/app")
			}
		}
		s.checkUsers(t, "stopped", bad, 1)
		s.restart(t)
		s.checkUsers(t, "stopped before the restart", bad, 1)
	})
}
