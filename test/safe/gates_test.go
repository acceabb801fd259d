package safe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestWindow: changes outside of the maintenance window wait, and are one rollout when it opens,
// wherever the window comes from.
func TestWindow(t *testing.T) {
	t.Parallel()
	const nights = "0 3 * * * 1h"
	for place, set := range map[string]func(t *testing.T, s *scene) (flags []string){
		"workload": func(t *testing.T, s *scene) []string {
			t.Helper()
			s.Annotate(t, name(1), settings.Window, nights)
			return nil
		},
		"namespace": func(t *testing.T, s *scene) []string {
			t.Helper()
			s.annotateNamespace(t, settings.Window, nights)
			return nil
		},
		"controller": func(*testing.T, *scene) []string { return []string{"--window", nights} },
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.users(t, 1)
			flags := set(t, s)
			s.Clock = until(12, 0)
			s.witness = s.NewWitness(t)
			s.Annotate(t, "witness", settings.Window, "always")
			s.run(t, flags...)
			for _, value := range []string{"2", "3"} {
				s.SetConfig(t, "app", "key", value)
				s.awaitState(t, input.AwaitsWindow, version("app", value), name(1))
				s.checkUsers(t, "outside of the window", version("app", value), 0)
			}
			s.controller.Stop(t)
			s.Clock = until(2, 59) + 55*time.Second
			s.start(t)
			s.awaitUsers(t, version("app", "3"), 1)
			s.checkRollouts(t, "one rollout in the window", 1)
		})
	}
}

// until is how far away the next time of day is in UTC, as an offset of the controller's clock. The
// next day of one offset is after every time of the other.
func until(hour, minute int) time.Duration {
	now := time.Now().UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, time.UTC)
	days := 1
	if hour < 12 {
		days = 2
	}
	return at.AddDate(0, 0, days).Sub(now)
}

// annotateNamespace sets an annotation of the scene's namespace; an empty value removes it.
func (s *scene) annotateNamespace(t *testing.T, key, value string) {
	t.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	n := &corev1.Namespace{}
	n.Name = s.Namespace
	if err := s.Client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, text))); err != nil {
		t.Fatal(err)
	}
}

// checkRollouts waits until the controller has decided on everything so far, and fails when a user
// was rolled out another number of times.
func (s *scene) checkRollouts(t *testing.T, why string, want int) {
	t.Helper()
	s.revive(t)
	s.witness.Pass(t)
	s.checkCount(t, why, want)
}

// checkCount does the same where the controller's decisions are known.
func (s *scene) checkCount(t *testing.T, why string, want int) {
	t.Helper()
	s.fleet.catchUp(t, s.World, s.Namespace)
	for workload, got := range s.fleet.rollouts() {
		if strings.Contains(workload, "/user-") && got != want {
			t.Errorf("%s: %s was rolled out %d times, want %d", why, workload, got, want)
		}
	}
}

// TestHoldOnNamespace: a hold on a namespace holds all of its workloads, also after a restart, and
// no others. Its release delivers pending changes in one rollout.
func TestHoldOnNamespace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.process = true
	s.users(t, 2)
	s.run(t)
	s.lockstep(t, "hold", "namespace/"+s.Namespace, "release freeze")
	for _, value := range []string{"2", "3"} {
		s.SetConfig(t, "app", "key", value)
		s.awaitEvent(t, name(1), "Warning Held", `"release freeze"`)
		s.awaitState(t, input.Held, version("app", value), name(1), name(2))
		s.restart(t)
	}
	s.awaitState(t, input.Held, version("app", "3"), name(1))
	s.checkCount(t, "the namespace is held", 0)
	s.lockstep(t, "release", "namespace/"+s.Namespace)
	s.awaitUsers(t, version("app", "3"), 2)
	s.checkRollouts(t, "one rollout for both changes", 1)
}

// TestAfter: a workload rolls after the one that it names has finished the same change. One that is
// missing is reported and ignored.
func TestAfter(t *testing.T) {
	t.Parallel()
	twice(t, []int{1}, func(s *scene) {
		t := s.t
		s.Create(t, testkit.ConfigMap("app", "key", "1"))
		db, web, api := user("db", "app", ""), user(name(1), "app", ""), user("api", "app", "")
		web.Annotations[settings.After] = "deployment/db"
		api.Annotations[settings.After] = "deployment/missing"
		s.create(t, db, web, api)
		s.awaitComplete(t)
		s.run(t, "--settle", "100ms")
		s.slow(func(pod *corev1.Pod) bool { return pod.Labels["app"] == "db" })
		s.SetConfig(t, "app", "key", "2")
		next := version("app", "2")
		s.awaitUsers(t, next, 2) // db, which isn't ready, and api
		s.awaitEvent(t, "api", "Warning", settings.After, "deployment/missing")
		s.awaitState(t, input.AwaitsWorkload, next, name(1))
		s.restart(t)
		s.checkRollouts(t, "db isn't ready", 0)
		s.mend(t)
		s.replacePods(t, "db")
		s.awaitUsers(t, next, 3)
		s.awaitComplete(t)
		for _, step := range s.fleet.begun(next) {
			if strings.HasSuffix(step.name, name(1)) && step.completed == 0 {
				t.Errorf("%s began when nothing had completed", step.name)
			}
		}
	})
}

// replacePods deletes the pods of a workload that aren't ready.
func (s *scene) replacePods(t *testing.T, app string) {
	t.Helper()
	pods := &corev1.PodList{}
	if err := s.Client.List(t.Context(), pods, client.InNamespace(s.Namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase != corev1.PodRunning {
			if err := s.Client.Delete(t.Context(), &pods.Items[i]); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAfterCycle: workloads that wait for each other are reported, and all roll.
func TestAfterCycle(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Create(t, testkit.ConfigMap("app", "key", "1"))
	for n := range 3 {
		d := user(name(n+1), "app", "")
		d.Annotations[settings.After] = "deployment/" + name((n+1)%3+1)
		s.create(t, d)
	}
	s.awaitComplete(t)
	s.run(t, "--settle", "100ms")
	s.SetConfig(t, "app", "key", "2")
	s.awaitUsers(t, version("app", "2"), 3)
	for n := range 3 {
		s.awaitEvent(t, name(n+1), "Warning InvalidAnnotation", settings.After)
	}
	s.checkRollouts(t, "each once", 1)
}

// TestBadSettings: a setting that can't be understood is reported with the name of its annotation,
// and treated as absent.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cases := []struct{ workload, annotation, value string }{
		{"window", settings.Window, "at night"},
		{"window-zone", settings.Window, "0 3 * * * 1h Europe/Nowhere"},
		{"window-never", settings.Window, "0 3 31 2 * 1h"},
		{"after", settings.After, "the database"},
		{"after-kind", settings.After, "service/db"},
		{"after-self", settings.After, "deployment/after-self"},
	}
	for _, bad := range cases {
		s.Create(t, testkit.ConfigMap("cm-"+bad.workload, "key", "1"))
		d := user(bad.workload, "cm-"+bad.workload, "")
		d.Annotations[bad.annotation] = bad.value
		s.create(t, d)
	}
	s.users(t, 1)
	s.annotateNamespace(t, settings.MaxRolling, "many")
	s.annotateNamespace(t, settings.Notify, "nobody")
	s.annotateNamespace(t, settings.Window, "sometimes")
	s.awaitComplete(t)
	s.run(t)
	s.SetConfig(t, "app", "key", "2")
	s.awaitUsers(t, version("app", "2"), 1)
	for _, annotation := range []string{settings.MaxRolling, settings.Notify, settings.Window} {
		s.awaitEvent(t, name(1), "Warning InvalidAnnotation", annotation)
	}
	for _, bad := range cases {
		s.SetConfig(t, "cm-"+bad.workload, "key", "2")
		s.awaitUsers(t, version("cm-"+bad.workload, "2"), 1)
		s.awaitEvent(t, bad.workload, "Warning InvalidAnnotation", bad.annotation)
	}
}
