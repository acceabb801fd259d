package ask_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// safeScenes are about changes that reach workloads one after the other. A played kubelet makes
// their pods ready, except new ones of the workloads that go first.
func safeScenes() group {
	const closed = settings.Window + ": '0 2 29 2 * 2h Europe/Berlin'"
	return group{
		open: playKubelet,
		run: func(t testing.TB, s *stage) {
			t.Helper()
			s.run(t, "--settle=0", "--damping=1h", "--max-damping=1h", "--max-delay=5s")
		},
		scenes: []scene{
			{reason: input.AwaitsTurn, where: inState, make: fleet(600, ""), bring: touchedWhenHealthy, also: knowsPlace},
			{reason: input.AwaitsFirst, where: inState, make: fleet(600, ", "+settings.Quiet+": 24h"), bring: touchedWhenHealthy},
			{reason: input.VersionStopped, where: inState, make: fleet(1, ""), bring: touchedWhenHealthy, also: knowsFailure},
			{reason: input.AwaitsWindow, where: inState, make: app(auto + ", " + closed), bring: touched, also: knowsWindow},
			{reason: input.AwaitsWorkload, where: inState, bring: touched, make: func(t testing.TB, s *stage, name string) {
				t.Helper()
				s.make(t, configMap(name)+deployment("before", hourly, reads(name))+deployment(name, auto+", "+settings.After+": deployment/before", reads(name)))
			}},
			{reason: input.AfterIgnored, where: inWarnings, inOtherWords: true, make: app(auto + ", " + settings.After + ": deployment/none"), bring: touched},
			{reason: input.Damped, where: inState, make: app(auto), bring: touchedAgainAndAgain, also: looksAgain},
		},
	}
}

// stoppedScenes are those of the kill switch, which stops everything.
func stoppedScenes() group {
	return group{
		run: func(t testing.TB, s *stage) { t.Helper(); s.run(t) },
		ready: func(t testing.TB, s *stage) {
			t.Helper()
			stop := testkit.ConfigMap(settings.StopName, settings.StopAll, "incident 42")
			stop.Namespace = s.Own
			s.Create(t, stop)
		},
		scenes: []scene{{reason: input.Stopped, where: inState, make: app(auto), bring: touched, also: func(_ testing.TB, _ *stage, e explanation) string {
			if len(e.Stops) != 1 || e.Stops[0].Reason != "incident 42" {
				return fmt.Sprintf("the stops are %+v", e.Stops)
			}
			return ""
		}}},
	}
}

// playKubelet makes pods ready, except those that a rollout of ours gives to a workload that goes
// first.
func playKubelet(t testing.TB, s *stage) {
	t.Helper()
	testkit.RunInBackground(t, func(ctx context.Context) {
		refuses := func(pod *corev1.Pod) bool {
			return pod.Annotations[settings.Inputs] != "" && strings.HasPrefix(pod.Labels["app"], "first-")
		}
		if err := kubelet.Play(ctx, testkit.NewClient(t, s.Cluster.Kubeconfig()), s.Namespace, refuses); err != nil {
			t.Error(err)
		}
	})
}

// fleet makes four Deployments with a pod each that read one ConfigMap. One goes first, has more
// annotations, and its rollout has so many seconds.
func fleet(deadline int, more string) func(testing.TB, *stage, string) {
	return func(t testing.TB, s *stage, name string) {
		t.Helper()
		all := configMap(name)
		for _, each := range []string{"first-" + name, "second-" + name, "third-" + name, name} {
			annotations := auto
			if strings.HasPrefix(each, "first-") {
				annotations += ", " + settings.First + `: "true"` + more
			}
			one := deployment(each, annotations, "schedulerName: "+kubelet.Scheduler+", "+reads(name))
			all += strings.Replace(one, "replicas: 0", fmt.Sprintf("replicas: 1, progressDeadlineSeconds: %d", deadline), 1)
		}
		s.make(t, all)
	}
}

// touchedWhenHealthy changes the ConfigMap of a fleet once all of it is available and known.
func touchedWhenHealthy(t testing.TB, s *stage, name string) {
	t.Helper()
	for _, each := range []string{"first-" + name, "second-" + name, "third-" + name, name} {
		s.awaitOnRecord(t, "deployment/"+each)
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			return s.Deployment(t, each).Status.AvailableReplicas == 1, each + " has no available pod"
		})
	}
	s.touch(t, name)
}

// touchedAgainAndAgain rolls out the Deployment until that is too often.
func touchedAgainAndAgain(t testing.TB, s *stage, name string) {
	t.Helper()
	const free = 5
	shown := ""
	for i := range free {
		s.SetConfig(t, name, "key", fmt.Sprint("again ", i))
		shown = s.AwaitRollout(t, name, shown)
	}
	s.SetConfig(t, name, "key", "once too often")
}

func knowsPlace(_ testing.TB, _ *stage, e explanation) string {
	if len(e.Spread) != 1 || e.Spread[0].Users != 4 || e.Spread[0].Rolling != 1 || e.Spread[0].Place == 0 || !strings.HasPrefix(e.State.Ends, "its turn: ") {
		return fmt.Sprintf("the place in line is missing: %+v, ends with %q", e.Spread, e.State.Ends)
	}
	return ""
}

func knowsFailure(_ testing.TB, _ *stage, e explanation) string {
	if len(e.StoppedVersions) != 1 || len(e.StoppedVersions[0].FailedOn) != 1 || e.StoppedVersions[0].FailedOn[0] != "deployment/first-versionstopped" {
		return fmt.Sprintf("it doesn't say what failed: %+v", e.StoppedVersions)
	}
	if want := "another version, or lockstep resume configmap/versionstopped -n " + e.Namespace; e.State.Ends != want {
		return fmt.Sprintf("it ends with %q, want %q", e.State.Ends, want)
	}
	return ""
}

func knowsWindow(_ testing.TB, _ *stage, e explanation) string {
	if e.Window == nil || e.Window.Opens == nil || e.Window.On != "on the workload" || e.State.Next == nil {
		return fmt.Sprintf("it doesn't say when the window opens: %+v", e.Window)
	}
	return ""
}
