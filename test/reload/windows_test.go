package reload_test

import (
	"context"
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
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// disturb changes something at an interval until the returned function is called.
func (s *stage) disturb(t testing.TB, every time.Duration, patch func(turn int) (client.Object, string)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for turn := 0; ; turn++ {
			o, body := patch(turn)
			o.SetNamespace(s.Namespace)
			if err := s.Client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil && ctx.Err() == nil {
				t.Errorf("disturb: %v", err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	end := func() {
		cancel()
		group.Wait()
	}
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

// TestBurstIsOneRollout: changes of several sources, of keys and of their removal
// within the window are one rollout, with the last content of each.
func TestBurstIsOneRollout(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("app", "key: one, more: one")+configMap("extra", "key: one")+secret("db", "key: one")+
		deployment("web", auto+", "+settings.Quiet+": 4s", uses("configmap/app", "configmap/extra", "secret/db"))+
		deployment("eager", auto+", "+settings.Quiet+": 0s", uses("configmap/extra")))
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "configmap/extra", "secret/db")
	for turn := range 5 {
		s.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		s.change(t, "secret/db", fmt.Sprintf("{stringData: {key: turn-%d}}", turn))
	}
	s.change(t, "configmap/app", "{data: {more: null}}")
	s.change(t, "configmap/extra", "{data: {key: two}}")
	last := time.Now()
	s.awaitRollouts(t, "deployment/eager", 1)
	s.awaitRollouts(t, web, 1)
	if waited := time.Since(last); waited < 3*time.Second {
		t.Errorf("rolled out %s after the last change, want the window of 4s", waited)
	}
	s.checkRollouts(t, "a burst", 1, web)
	shown := s.shown(t, web)
	for _, source := range []string{"configmap/app", "configmap/extra", "secret/db"} {
		s.awaitKnown(t, deploy, "web", digest(t, shown, source))
	}
}

// TestConstantChangeIsBounded: changes that never end postpone the rollout by no
// more than the maximum delay; labels that never rest postpone nothing.
func TestConstantChangeIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, configMap("busy", "key: one")+configMap("calm", "key: one")+configMap("labelled", "key: one")+
		deployment("busy", auto+", "+settings.Quiet+": 3s", uses("configmap/busy"))+
		deployment("labelled", auto, uses("configmap/labelled"))+
		deployment("changed", auto+", "+settings.Quiet+": 3s", uses("configmap/calm")))
	s.run(t, "--max-delay", "6s")
	s.awaitKnown(t, deploy, "busy", "configmap/busy")
	s.awaitKnown(t, deploy, "changed", "configmap/calm")
	s.awaitKnown(t, deploy, "labelled", "configmap/labelled")

	began := time.Now()
	s.disturb(t, 300*time.Millisecond, churn("busy"))
	s.disturb(t, time.Second, relabel("labelled"))
	s.change(t, "configmap/calm", "{data: {key: two}}")
	s.disturb(t, time.Second, relabel("calm"))

	s.awaitRollouts(t, "deployment/changed", 1)
	calm := time.Since(began)
	s.awaitRollouts(t, "deployment/busy", 1)
	if busy := time.Since(began); busy < 5*time.Second || calm > busy {
		t.Errorf("constant change was delivered after %s, want the 6s of the maximum delay; a single one beside changing labels after %s, want its 3s", busy, calm)
	}
	s.awaitRollouts(t, "deployment/busy", 2) // and again, as long as it goes on
	s.checkRollouts(t, "labels alone", 0, "deployment/labelled")
	s.checkRollouts(t, "one change and many labels", 1, "deployment/changed")
}

// TestKilledUnderConstantChange: the maximum delay counts from the first change,
// also when the controller is killed again and again before it is over. One that
// forgot the first change would begin to wait anew.
func TestKilledUnderConstantChange(t *testing.T) {
	t.Parallel()
	const delay = 6 * time.Second
	s := newStage(t, simple())
	s.annotate(t, web, settings.Quiet, "3s")
	c := s.run(t, "--max-delay", delay.String())
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.disturb(t, 300*time.Millisecond, churn("app"))
	s.awaitKnown(t, deploy, "web", `"pending":`)
	since := s.pendingSince(t)
	for time.Since(since) < delay-time.Second {
		kill(t, c)
		c = s.StartController(t, "--quiet", testkit.Quiet, "--max-delay", delay.String())
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			return strings.Contains(c.Stderr(), "verb=wait") || time.Since(since) > delay-time.Second, "it does not wait"
		})
	}
	kill(t, c)
	if s.rollouts(t, web) == 1 {
		return // on a slow machine it lived long enough to deliver at the bound
	}
	if got := s.pendingSince(t); !got.Equal(since) {
		t.Errorf("a change is pending since %s, want since the first one, %s", got, since)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { return time.Since(since) > delay, "" })
	c = s.StartController(t, "--quiet", testkit.Quiet, "--max-delay", delay.String())
	s.awaitRollouts(t, web, 1)
	if log := c.Stderr(); strings.Contains(log, "verb=wait") && strings.Index(log, "verb=wait") < strings.Index(log, "verb=move") {
		t.Errorf("%s after the first change it still waits:\n%s", time.Since(since), log)
	}
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

// TestStrippedManagedFields: without the times that the API server notes, a change
// that nobody watched is delivered one window after the start.
func TestStrippedManagedFields(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	kill(t, c)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, "configmap/app", "{metadata: {managedFields: [{}]}}")
	cm := &corev1.ConfigMap{}
	s.Get(t, "app", cm)
	if len(cm.ManagedFields) != 0 {
		t.Fatalf("the managed fields are still there: %v", cm.ManagedFields)
	}
	s.run(t)
	s.awaitRollouts(t, web, 1)
	s.checkRollouts(t, "one change", 1, web)
}
