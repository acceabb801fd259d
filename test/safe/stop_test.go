package safe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestThirdFails: the third workload fails, and the others keep the version before. People see
// it, whatever they look at. Another version clears it.
func TestThirdFails(t *testing.T) {
	t.Parallel()
	twice(t, []int{3}, func(s *scene) {
		t := s.t
		const all = 12
		s.users(t, all)
		metrics := fmt.Sprint("127.0.0.1:", labtest.FreePort(t))
		s.run(t, "--settle", "100ms", "--metrics-addr", metrics)
		bad := version("app", "bad")
		s.crash(nth(3, shows(bad)))
		s.SetConfig(t, "app", "key", "bad")
		s.awaitEvent(t, "app", "Warning VersionStopped")
		s.checkUsers(t, "the third failed", bad, 3)
		s.restart(t)
		s.checkUsers(t, "the third failed before the restart", bad, 3)

		waiting := s.without(bad)[0]
		s.awaitEvent(t, waiting, "Warning VersionStopped", "configmap/app")
		s.awaitMetric(t, metrics, `lockstep_version_stops{`, "1")
		s.awaitMetric(t, metrics, `lockstep_pending_workloads{reason="VersionStopped"}`, fmt.Sprint(all-3))
		for _, command := range [][]string{{"explain", "deployment/" + waiting}, {"explain", "configmap/app"}, {"status"}, {"plan", "-f", s.manifest(t, waiting)}} {
			s.await(t, func() (bool, string) { // the record is written once a second
				said := s.lockstep(t, command...)
				return strings.Contains(said, "VersionStopped") || strings.Contains(said, "Stopped:"), fmt.Sprintf("%q does not show the stop:\n%s", command, said)
			})
		}

		s.mend(t)
		s.SetConfig(t, "app", "key", "good")
		s.awaitUsers(t, version("app", "good"), all)
		s.awaitComplete(t)
		s.awaitMetric(t, metrics, `lockstep_version_stops{`, "0")
		s.await(t, func() (bool, string) {
			said := s.lockstep(t, "status")
			return !strings.Contains(said, "VersionStopped"), "the stop stays after another version:\n" + said
		})
	})
}

// manifest is a file with a Deployment as it is.
func (s *scene) manifest(t *testing.T, deployment string) string {
	t.Helper()
	d := s.Deployment(t, deployment)
	d.APIVersion, d.Kind, d.ManagedFields = "apps/v1", "Deployment", nil
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "deployment.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// nth is a rule for crash: all pods of the nth workload whose pods a rule selects.
func nth(n int, selects func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	var mu sync.Mutex
	var order []string
	return func(pod *corev1.Pod) bool {
		mu.Lock()
		defer mu.Unlock()
		app := pod.Labels["app"]
		if selects(pod) && !slices.Contains(order, app) {
			order = append(order, app)
		}
		return selects(pod) && slices.Index(order, app) == n-1
	}
}

// without are the users that don't show the version.
func (s *scene) without(version string) []string {
	with := s.fleet.users(version)
	all := s.fleet.names(func(sight) bool { return true })
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(with, name) || !strings.HasPrefix(name, "user-") })
}

// awaitMetric waits until the sum of the series with this beginning has a value.
func (s *scene) awaitMetric(t *testing.T, address, series, want string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		text := scrape(t, address)
		got := "0"
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, series) {
				_, got, _ = strings.Cut(strings.TrimSpace(line[strings.LastIndex(line, "}"):]), " ")
			}
		}
		return got == want, fmt.Sprintf("%s is %s, want %s", series, got, want)
	})
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error() // a controller that was killed
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestCrashAfterReady: pods without a readiness probe are ready for a moment before they crash. The
// Deployment controller finds the rollout complete and never gives up on it; the version is stopped
// all the same.
func TestCrashAfterReady(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		s.users(t, 5)
		s.run(t, "--settle", "5s", "--rollout-timeout", "20s")
		s.rule(&s.falls, everywhere)
		s.SetConfig(t, "app", "key", "bad")
		s.awaitEvent(t, "app", "Warning VersionStopped")
		s.checkUsers(t, "it crashed within the settle time", version("app", "bad"), 1)
	})
}

// TestBrokenBeforeStopsNobody: a workload whose pods crashed before the change fails with the new
// version too. The version reaches all others.
func TestBrokenBeforeStopsNobody(t *testing.T) {
	t.Parallel()
	twice(t, []int{2}, func(s *scene) {
		t := s.t
		const all = 6
		broken := func(pod *corev1.Pod) bool { return slices.Contains([]string{name(1), name(4)}, pod.Labels["app"]) }
		s.crash(broken)
		s.Create(t, testkit.ConfigMap("app", "key", "1"))
		for n := range all {
			s.create(t, user(name(n+1), "app", ""))
		}
		for n := range all {
			reason := "NewReplicaSetAvailable"
			if n+1 == 1 || n+1 == 4 {
				reason = "ProgressDeadlineExceeded"
			}
			s.awaitProgress(t, name(n+1), reason)
		}
		s.run(t, "--settle", "100ms")
		s.SetConfig(t, "app", "key", "2")
		s.awaitUsers(t, version("app", "2"), all)
		s.awaitProgress(t, name(1), "ProgressDeadlineExceeded")
		s.awaitProgress(t, name(4), "ProgressDeadlineExceeded")
		s.checkUsers(t, "two were broken before", version("app", "2"), all)
		for _, note := range s.Events(t, "app") {
			t.Errorf("configmap/app has the event %q", note)
		}
	})
}

// awaitProgress waits until the Deployment controller reports the reason for the newest template.
func (s *scene) awaitProgress(t *testing.T, deployment, reason string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		d := s.Deployment(t, deployment)
		for _, c := range d.Status.Conditions {
			if c.Reason == reason && d.Status.ObservedGeneration == d.Generation {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%s isn't %s: %+v", deployment, reason, d.Status.Conditions)
	})
}

// TestAllVersionsOfThePatch: a patch that delivered a ConfigMap and a Secret fails. Any of the two may be
// the cause, so neither reaches a further workload.
func TestAllVersionsOfThePatch(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.process = true // the built program: both changes fall into the time when it is down
	s.Create(t, testkit.ConfigMap("app", "key", "1"), testkit.Secret("db", "key", "1"))
	both := user("both", "app", "db")
	both.Annotations[settings.First] = "true"
	s.create(t, both)
	for n := range 4 {
		s.create(t, user(name(n+1), "app", ""), user(name(n+5), "", "db"))
	}
	s.awaitComplete(t)
	s.run(t, "--settle", "100ms")
	s.kill(t)
	s.crash(everywhere)
	s.SetConfig(t, "app", "key", "bad")
	s.SetSecret(t, "db", "key", "bad")
	s.start(t)
	for _, object := range []string{"app", "db"} {
		s.awaitEvent(t, object, "Warning VersionStopped")
	}
	for n := range 8 {
		s.awaitEvent(t, name(n+1), "Warning VersionStopped")
	}
	s.checkUsers(t, "one patch failed", version("app", "bad"), 1)
	for workload, count := range s.fleet.rollouts() {
		if strings.Contains(workload, "/user-") && count > 0 {
			t.Errorf("%s was rolled out although both versions are stopped", workload)
		}
	}
}

// TestReleased: a hold that a user ends is a change of the Deployment that its controller hasn't seen
// yet. The workload is healthy all the same, so it takes its turn, and its failure stops the version.
func TestReleased(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		const all = 5
		s.users(t, all)
		for n := range all {
			s.Annotate(t, name(n+1), settings.Hold, "freeze")
		}
		s.run(t, "--settle", "100ms")
		s.crash(everywhere)
		s.SetConfig(t, "app", "key", "bad")
		bad := version("app", "bad")
		s.awaitState(t, input.Held, bad, name(1), name(2), name(3), name(4), name(5))
		for n := range all {
			s.Patch(t, &appsv1.Deployment{}, name(n+1), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, settings.Hold))
		}
		s.awaitEvent(t, "app", "Warning VersionStopped")
		s.checkUsers(t, "all holds ended", bad, 1)
	})
}

// TestResume: a user lifts a stop, for this version.
func TestResume(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		const all = 6
		s.users(t, all)
		s.run(t, "--settle", "100ms")
		s.crash(everywhere)
		s.SetConfig(t, "app", "key", "2")
		s.awaitEvent(t, "app", "Warning VersionStopped")
		s.checkUsers(t, "stopped", version("app", "2"), 1)
		s.mend(t)
		s.await(t, func() (bool, string) { // the record is written once a second
			said := s.lockstep(t, "resume", "configmap/app")
			return strings.Contains(said, "is resumed"), said
		})
		s.awaitUsers(t, version("app", "2"), all)

		s.crash(everywhere)
		s.SetConfig(t, "app", "key", "3")
		s.await(t, func() (bool, string) {
			said := s.lockstep(t, "status")
			return strings.Contains(said, "VersionStopped"), "the next version isn't stopped:\n" + said
		})
		if got := len(s.fleet.users(version("app", "3"))); got >= all {
			t.Errorf("resume counts for the next version too: %d workloads have it", got)
		}
	})
}
