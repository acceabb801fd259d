package safe_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestFixReachesBroken: of four Deployments that use one ConfigMap, three are broken, and the healthy one has a
// quiet window of a day. A corrected ConfigMap reaches the three.
func TestFixReachesBroken(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		healthy := user(name(1), "app", "")
		healthy.Annotations[settings.Quiet] = "24h"
		s.broken(t, 2, 3, 4)
		s.create(t, healthy)
		s.awaitReady(t, name(1))
		s.run(t, "--settle", "100ms")
		s.mend(t)
		s.SetConfig(t, "app", "key", "2")
		next := version("app", "2")
		s.awaitUsers(t, next, 3)
		s.awaitReady(t, name(2), name(3), name(4))
		s.awaitState(t, input.QuietWindow, next, name(1))
		s.checkUsers(t, "the quiet window of the healthy one goes on", next, 3)
	})
}

// TestFirstIsAwaited: a healthy workload waits for the one that a user wants to be the first, and that wait is
// reported on the workload and on the source. One that is broken doesn't wait.
func TestFirstIsAwaited(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := user(name(1), "app", "")
	first.Annotations[settings.Quiet], first.Annotations[settings.First] = "24h", "true"
	s.broken(t, 4)
	s.create(t, first, user(name(2), "app", ""), user(name(3), "app", ""))
	s.awaitReady(t, name(1), name(2), name(3))
	s.run(t, "--settle", "100ms", "--max-delay", "1s")
	s.mend(t)
	s.SetConfig(t, "app", "key", "2")
	next := version("app", "2")
	s.awaitState(t, input.AwaitsFirst, next, name(2), name(3))
	s.awaitUsers(t, next, 1)
	for _, object := range []string{"app", name(2), name(3)} {
		s.awaitEvent(t, object, string(input.AwaitsFirst), "deployment/"+name(1))
	}
	s.checkUsers(t, "only the broken one has it", next, 1)
	s.Annotate(t, name(1), settings.Quiet)
	s.awaitUsers(t, next, 4)
	if begun := s.fleet.begun(next); begun[1].name != s.Namespace+"/"+name(1) {
		t.Errorf("%+v began in this order, want %s after the broken one", begun, name(1))
	}
}

// broken creates the ConfigMap "app" with the value "1" and users of it whose pods crash.
func (s *scene) broken(t *testing.T, numbers ...int) {
	t.Helper()
	s.Create(t, testkit.ConfigMap("app", "key", "1"))
	var names []string
	for _, n := range numbers {
		names = append(names, name(n))
	}
	s.crash(func(pod *corev1.Pod) bool { return slices.Contains(names, pod.Labels["app"]) })
	for _, n := range numbers {
		s.create(t, user(name(n), "app", ""))
	}
}

// awaitReady waits until the Deployments are complete.
func (s *scene) awaitReady(t *testing.T, names ...string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		open := s.fleet.names(func(s sight) bool { return !s.complete })
		waits := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(open, name) })
		return !waits, fmt.Sprintf("the rollouts of %q aren't complete", open)
	})
}
