package safe_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestEvictionsSpread: a series of evictions takes a turn, and shows whether the version is
// healthy. One that breaks every pod reaches one workload; another version reaches all.
func TestEvictionsSpread(t *testing.T) {
	t.Parallel()
	twice(t, nil, func(s *scene) {
		t := s.t
		const all = 6
		s.Create(t, testkit.ConfigMap("app", "key", "1"))
		for n := range all {
			u := user(name(n+1), "app", "")
			u.Annotations[settings.Strategy] = "evict"
			s.create(t, u)
		}
		s.awaitComplete(t)
		before := map[types.UID]string{}
		for n := range all {
			s.awaitRunning(t, name(n+1), 1)
			for uid := range s.pods(t, name(n+1)) {
				before[uid] = name(n + 1)
			}
		}
		replaced := func() int {
			kept := 0
			for n := range all {
				for uid := range s.pods(t, name(n+1)) {
					if before[uid] != "" {
						kept++
					}
				}
			}
			return all - kept
		}
		s.run(t, "--settle", "100ms", "--pod-strategies")
		s.crash(func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Labels["app"], "user-") })
		s.SetConfig(t, "app", "key", "bad")
		s.awaitEvent(t, "app", "Warning VersionStopped")
		s.restart(t)
		s.witness.Pass(t)
		if got := replaced(); got != 1 {
			t.Errorf("the pods of %d workloads were replaced, want one", got)
		}
		s.mend(t)
		s.SetConfig(t, "app", "key", "good")
		s.await(t, func() (bool, string) {
			got := replaced()
			return got == all, fmt.Sprintf("the pods of %d workloads were replaced, want %d", got, all)
		})
	})
}
