package reload_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// disturb changes something at an interval until the returned function is called.
func (s *stage) disturb(t testing.TB, every time.Duration, patch func(turn int) (client.Object, string)) (stop func()) {
	t.Helper()
	return s.repeat(t, every, func(turn int) {
		o, body := patch(turn)
		o.SetNamespace(s.Namespace)
		if err := s.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil && t.Context().Err() == nil {
			t.Errorf("disturb: %v", err)
		}
	})
}

// repeat does something at an interval until the returned function is called, or the test ends.
func (s *stage) repeat(t testing.TB, every time.Duration, do func(turn int)) (stop func()) {
	t.Helper()
	over := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for turn := 0; t.Context().Err() == nil; turn++ {
			do(turn)
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	})
	end := sync.OnceFunc(func() {
		close(over)
		group.Wait()
	})
	t.Cleanup(end)
	return end
}

// churn changes a ConfigMap's content again and again.
func churn(name string) func(int) (client.Object, string) {
	return func(turn int) (client.Object, string) {
		return testkit.ConfigMap(name, "key", ""), fmt.Sprintf(`{"data":{"key":"turn %d"}}`, turn)
	}
}

// relabel changes a ConfigMap's labels again and again.
func relabel(name string) func(int) (client.Object, string) {
	return func(turn int) (client.Object, string) {
		return testkit.ConfigMap(name, "key", ""), fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, turn)
	}
}

// TestConstantChangeIsBounded: changes that never end postpone the rollout by no
// more than the maximum delay. The window is as long as that, so that it does not end
// by itself, should the changes come late.
func TestConstantChangeIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.annotate(t, web, settings.Quiet, "3s")
	s.run(t, "--max-delay", "3s")
	s.awaitKnown(t, deploy, "web", "configmap/app")

	began := time.Now()
	s.disturb(t, 300*time.Millisecond, churn("app"))
	s.awaitFurtherRollouts(t, web, 1)
	if waited := time.Since(began); waited < 2*time.Second {
		t.Errorf("constant change was delivered after %s, want the 3s of the maximum delay", waited)
	}
	s.awaitFurtherRollouts(t, web, 2) // and again, as long as it goes on
}

// TestLabelsPostponeNothing: labels that never rest are no change, and do not keep
// one from being delivered when its window is over. The maximum delay is too long to
// do it instead.
func TestLabelsPostponeNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("calm", "key: one")+configMap("labelled", "key: one")+
		deployment("labelled", auto, uses("configmap/labelled"))+
		deployment("changed", auto+", "+settings.Quiet+": 3s", uses("configmap/calm")))
	s.run(t, "--max-delay", "10m")
	s.awaitKnown(t, deploy, "changed", "configmap/calm")
	s.awaitKnown(t, deploy, "labelled", "configmap/labelled")
	s.disturb(t, time.Second, relabel("labelled"))
	s.change(t, "configmap/calm", "{data: {key: two}}")
	s.disturb(t, time.Second, relabel("calm"))
	s.awaitRollouts(t, "deployment/changed", 1)
	s.checkRollouts(t, "labels alone", 0, "deployment/labelled")
	s.checkRollouts(t, "one change and many labels", 1, "deployment/changed")
}

// TestKilledUnderConstantChange: the maximum delay counts from the first change,
// also when the controller is killed again and again before it is over. One that
// forgot the first change would begin to wait anew.
func TestKilledUnderConstantChange(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.annotate(t, web, settings.Quiet, "1m")
	c := s.runProcess(t, "--max-delay", "10m")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	stop := s.disturb(t, 300*time.Millisecond, churn("app"))
	s.awaitKnown(t, deploy, "web", `"pending":`)
	since := s.pendingSince(t)
	for range 3 {
		kill(t, c)
		c = s.StartController(t, "--quiet", testkit.Quiet, "--max-delay", "10m")
		s.firstDecision(t, c, "web")
	}
	kill(t, c)
	if got := s.pendingSince(t); !got.Equal(since) {
		t.Errorf("a change is pending since %s, want since the first one, %s", got, since)
	}
	if got := s.rollouts(t, web); got != 0 {
		t.Errorf("rolled out %d times within the window and the delay", got)
	}

	// With a bound that is over since long, the next one must not wait at all.
	const delay = 2 * time.Second
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { return time.Since(since) > delay, "the maximum delay isn't over" })
	stop()                                             // or there would be a rollout more every two seconds
	s.annotate(t, web, settings.Quiet, delay.String()) // a longer window would be kept
	c = inprocess.StartController(t, s.World, "--quiet", testkit.Quiet, "--max-delay", delay.String())
	s.awaitRollouts(t, web, 1)
	if first := s.firstDecision(t, c, "web"); !strings.Contains(first, "verb=roll") {
		t.Errorf("%s after the first change it still waits: %s", time.Since(since), first)
	}
}

// firstDecision is the first line of a controller's log on what it decided for a
// Deployment. It waits for it: a rollout is seen before it is told of.
func (s *stage) firstDecision(t testing.TB, c *testkit.Controller, name string) string {
	t.Helper()
	var first string
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for line := range strings.Lines(c.Stderr()) {
			if strings.Contains(line, "workload=Deployment/"+s.Namespace+"/"+name+" ") {
				first = line
				return true, ""
			}
		}
		return false, "the log does not say what was decided for " + name
	})
	return first
}

// pendingSince is when, by the record, the first undelivered change of "web" was
// seen.
func (s *stage) pendingSince(t testing.TB) time.Time {
	t.Helper()
	entry, err := record.Decode(s.remembered(t, deploy, "web"))
	if err != nil {
		t.Fatal(err)
	}
	return entry.PendingSince
}

// TestStrippedManagedFields: without the times that the API server notes, nobody can
// tell how old a change is that nobody watched: it waits for a window, and is
// delivered.
func TestStrippedManagedFields(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	stop(t, c)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, "configmap/app", "{metadata: {managedFields: [{}]}}")
	cm := &corev1.ConfigMap{}
	s.Get(t, "app", cm)
	if len(cm.ManagedFields) != 0 {
		t.Fatalf("the managed fields are still there: %v", cm.ManagedFields)
	}
	c = s.run(t, "--quiet", "1h", "--max-delay", "1h")
	if first := s.firstDecision(t, c, "web"); !strings.Contains(first, "verb=wait") {
		t.Errorf("a change of unknown age is delivered at once: %s", first)
	}
	s.annotate(t, web, settings.Quiet, testkit.Quiet)
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "one change", 1, web)
}

// TestClockIsOff: a controller whose clock is wrong by five minutes delivers what it
// watches and what it missed, once; and what it left waiting, the next one with a
// right clock delivers.
func TestClockIsOff(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, simple())
			s.Clock = off
			c := s.run(t)
			s.awaitKnown(t, deploy, "web", "configmap/app")
			s.checkRollouts(t, "installed", 0, web)
			s.change(t, "configmap/app", "{data: {key: two}}")
			s.awaitRollouts(t, web, 1)
			s.awaitKnown(t, deploy, "web", versionOf("two"))

			stop(t, c)
			s.change(t, "configmap/app", "{data: {key: three}}")
			c = s.run(t)
			s.awaitRollouts(t, web, 2)
			s.awaitKnown(t, deploy, "web", versionOf("three"))

			s.annotate(t, web, settings.Quiet, "1h")
			s.witness.Pass(t)
			s.change(t, "configmap/app", "{data: {key: four}}")
			s.awaitKnown(t, deploy, "web", `"pending":`)
			stop(t, c)
			s.Clock = 0
			s.annotate(t, web, settings.Quiet, "1s")
			s.run(t)
			s.awaitRollouts(t, web, 3)
			s.checkRollouts(t, "three changes", 3, web)
		})
	}
}

// TestQuietLongerThanMaximumDelay: the window that a workload asks for is kept.
func TestQuietLongerThanMaximumDelay(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.annotate(t, web, settings.Quiet, "1h")
	s.run(t, "--max-delay", "1s")
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitKnown(t, deploy, "web", `"pending":`)
	s.awaitSecondAfter(t, s.pendingSince(t).Add(time.Second))
	s.checkRollouts(t, "the window has just begun", 0, web)
	s.annotate(t, web, settings.Quiet, "1s")
	s.awaitRollouts(t, web, 1)
}
