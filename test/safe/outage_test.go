package safe_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestAPIServerRestartsInARamp: the API server crashes right after the write for the third workload,
// in the second step, and right after that for the ninth, when several are rolling. Each workload is
// rolled out once, in steps and within the budget, and the controller doesn't restart.
func TestAPIServerRestartsInARamp(t *testing.T) {
	t.Parallel()
	labtest.In(t, labtest.TierAll)
	cluster := labtest.Private(t, labtest.Options{})
	const all, budget = 20, 5
	s := newSceneOn(t, cluster)
	s.outages = true
	s.users(t, all)
	s.run(t, "--max-rolling", fmt.Sprint(budget), "--settle", "100ms")
	for turn, least := range []int{3, 9} {
		crashed := make(chan error, 1)
		s.fleet.onRollout(func(count int) {
			if count >= least && len(crashed) == 0 {
				crashed <- cluster.StopAPIServer()
			}
		})
		if turn == 0 {
			s.SetConfig(t, "app", "key", "2")
		}
		select {
		case err := <-crashed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("the ramp doesn't go on")
		}
		s.fleet.onRollout(func(int) {})
		if err := cluster.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	next := version("app", "2")
	s.awaitUsers(t, next, all)
	s.awaitComplete(t)
	s.checkOnce(t, next, all, budget)
	select {
	case <-s.controller.Done():
		t.Error("the controller ended")
	default:
	}
}

// checkOnce waits until the controller has decided on everything so far. Each of the users was
// rolled out once then, and the version went out in steps and within the budget.
func (s *scene) checkOnce(t *testing.T, version string, all, budget int) {
	t.Helper()
	s.checkUsers(t, "each workload", version, all)
	for n := range all {
		// A watch that was interrupted may miss a rollout. Each one makes a revision.
		if got := s.Revisions(t, name(n+1)); got != 2 {
			t.Errorf("%s has %d revisions, want the first and that of the change", name(n+1), got)
		}
	}
	if most := s.fleet.mostRolling(version); most > budget || most < 1 {
		t.Errorf("%d workloads were rolling at the same time, want some, and at most %d", most, budget)
	}
	s.checkSteps(t, version)
}

// TestStandbyTakesOverInARamp: the leader is killed right after its write for the ninth workload,
// which isn't on record yet. The standby, another process, goes on with the ramp when the lease ends.
// Each workload is rolled out once, in steps, and another version that the leader has stopped stays
// stopped.
func TestStandbyTakesOverInARamp(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const all, budget = 20, 5
	s.Create(t, testkit.ConfigMap("other", "key", "1"))
	for n := range 5 {
		s.create(t, user(fmt.Sprint("other-", n), "other", ""))
	}
	s.users(t, all)
	s.witness = s.NewWitness(t)
	flags := []string{"--quiet", testkit.Quiet, "--max-rolling", fmt.Sprint(budget), "--settle", "100ms", "--leader-elect=true", "--lease-duration=1m"}
	leader := s.StartReady(t, flags...)
	s.witness.AwaitKnown(t)
	s.awaitKnown(t)
	bad, next := version("other", "bad"), version("app", "2")
	s.crash(shows(bad))
	s.SetConfig(t, "other", "key", "bad")
	s.awaitEvent(t, "other", "Warning VersionStopped")
	standby := s.StartReady(t, flags...)

	before := s.fleet.total()
	s.fleet.onRollout(func(count int) {
		if count == before+9 {
			_ = syscall.Kill(leader.PID(), syscall.SIGKILL)
		}
	})
	s.SetConfig(t, "app", "key", "2")
	if code := leader.ExitCode(t, testkit.Patience); code != 128+int(syscall.SIGKILL) {
		t.Fatalf("the leader ended with exit code %d", code)
	}
	s.fleet.catchUp(t, s.World, s.Namespace)
	if got := s.fleet.total() - before; got >= all {
		t.Errorf("%d workloads were rolled out before the leader was killed, want some", got)
	}
	s.awaitUsers(t, next, all)
	s.await(t, func() (bool, string) {
		open := s.fleet.names(func(s sight) bool { return !s.complete && !s.has(bad) })
		return len(open) == 0, fmt.Sprintf("the rollouts of %q aren't complete", open)
	})
	s.checkOnce(t, next, all, budget)
	s.checkUsers(t, "stopped before the takeover", bad, 1)
	select {
	case <-standby.Done():
		t.Error("the standby ended")
	default:
	}
}
