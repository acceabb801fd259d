package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// withPods makes a manifest of a workload ask for pods.
func withPods(manifest string, replicas int, more string) string {
	return strings.Replace(manifest, "replicas: 0", fmt.Sprintf("replicas: %d%s", replicas, more), 1)
}

// TestTesterDeliveredMeansRunning holds "delivered means that pods run it" against undos
// that restart no pod: of a rollout that is stuck, and of a template that rolls by hand.
func TestTesterDeliveredMeansRunning(t *testing.T) {
	t.Parallel()
	grace := ", terminationGracePeriodSeconds: 0"
	s := newStage(t, secret("db", "key: one")+configMap("redo", "key: one")+
		withPods(deployment("stuck", auto, uses("secret/db")+grace), 2, "")+
		withPods(workload("StatefulSet", "byhand", auto, uses("secret/db")+grace), 1, ", updateStrategy: {type: OnDelete}")+
		withPods(workload("StatefulSet", "redo", auto, uses("configmap/redo")+grace), 1, ", updateStrategy: {type: OnDelete}"),
		labtest.KWOK)
	s.awaitReady(t, "stuck", 2)
	s.awaitReady(t, "byhand", 1)
	s.awaitReady(t, "redo", 1)
	s.run(t)
	s.awaitKnown(t, deploy, "stuck", "secret/db")
	s.awaitKnown(t, "StatefulSet.apps", "byhand", "secret/db")
	s.awaitKnown(t, "StatefulSet.apps", "redo", "configmap/redo")

	t.Run("held, a rollout is stuck, a Secret rotates, the rollout is undone, the hold ends", func(t *testing.T) {
		first := s.uids(t, "stuck")
		for _, ref := range []string{"deployment/stuck", "statefulset/byhand"} {
			s.annotate(t, ref, settings.Hold, "freeze")
		}
		s.change(t, "deployment/stuck", "{spec: {template: {spec: {schedulerName: none}}}}")
		s.awaitPods(t, "deployment/stuck", "unavailableReplicas", 1)
		s.change(t, "statefulset/byhand", "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
		s.awaitObserved(t, "statefulset/byhand")
		s.change(t, "secret/db", "{stringData: {key: two}}")
		s.AwaitEvent(t, "stuck", "Held", "secret/db")
		s.AwaitEvent(t, "byhand", "Held", "secret/db")
		s.change(t, "deployment/stuck", "{spec: {template: {spec: {schedulerName: null}}}}")
		s.change(t, "statefulset/byhand", "{spec: {template: {metadata: {annotations: {edited: null}}}}}")
		s.awaitObserved(t, "statefulset/byhand")
		s.awaitObserved(t, "deployment/stuck")
		s.awaitPods(t, "deployment/stuck", "updatedReplicas", 2)
		s.awaitPods(t, "deployment/stuck", "replicas", 2)
		if now := s.uids(t, "stuck"); fmt.Sprint(now) != fmt.Sprint(first) {
			t.Fatalf("pods are %v, want those that ran before: %v", now, first)
		}
		s.pass(t)
		for _, ref := range []string{"deployment/stuck", "statefulset/byhand"} {
			s.annotate(t, ref, settings.Hold)
		}
		s.checkRollouts(t, "no pod has read the Secret since it was rotated", 3, "deployment/stuck")
		s.checkRollouts(t, "no pod has read the Secret since it was rotated", 3, "statefulset/byhand")
	})

	t.Run("OnDelete, undone and redone before a pod is deleted", func(t *testing.T) {
		const ref, groupKind = "statefulset/redo", "StatefulSet.apps"
		s.change(t, "configmap/redo", "{data: {key: two}}")
		s.AwaitEvent(t, "redo", "Normal AwaitsPods", "configmap/redo")
		second := s.shown(t, ref)
		s.awaitObserved(t, ref)
		s.revert(t, ref, "")
		s.awaitKnown(t, groupKind, "redo", "back:")
		s.revert(t, ref, second)
		s.awaitNotBack(t, groupKind, "redo")
		s.checkNoEvent(t, "redo", "Reloaded")
		if entry := s.remembered(t, groupKind, "redo"); !strings.Contains(entry, "awaits") {
			t.Errorf("the pod of the older revision still runs, and the record does not wait for it: %s", entry)
		}
		s.deletePods(t, "redo")
		s.AwaitEvent(t, "redo", "Normal Reloaded", "configmap/redo")
	})
}

// uids are the pods of a workload that run, by name.
func (s *stage) uids(t testing.TB, app string) map[string]types.UID {
	t.Helper()
	all := map[string]types.UID{}
	for _, pod := range s.pods(t, app) {
		all[pod.Name] = pod.UID
	}
	return all
}

// awaitReplaced waits until the first pod of a workload was replaced, and returns those
// that are new.
func (s *stage) awaitReplaced(t testing.TB, app string, first map[string]types.UID) map[string]types.UID {
	t.Helper()
	replaced := map[string]types.UID{}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for name, uid := range s.uids(t, app) {
			if first[name] != uid {
				replaced[name] = uid
			}
		}
		return len(replaced) > 0, "no pod of " + app + " was replaced"
	})
	return replaced
}

// TestTesterEvictions holds "pods that are older than the change are evicted" against what
// happens in the middle of a series.
func TestTesterEvictions(t *testing.T) {
	t.Parallel()
	set := func(name, source string) string {
		return configMap(source, "key: one") +
			withPods(workload("StatefulSet", name, auto+", "+settings.Strategy+": evict", uses("configmap/"+source)+", terminationGracePeriodSeconds: 0"), 3, ", podManagementPolicy: OrderedReady")
	}
	s := newStage(t, set("back", "back")+set("held", "held"), labtest.KWOK)
	s.awaitReady(t, "back", 3)
	s.awaitReady(t, "held", 3)
	s.run(t, "--pod-strategies")
	s.awaitKnown(t, "StatefulSet.apps", "back", "configmap/back")
	s.awaitKnown(t, "StatefulSet.apps", "held", "configmap/held")

	t.Run("a hold in the middle evicts no pod twice", func(t *testing.T) {
		first := s.uids(t, "held")
		s.change(t, "configmap/held", "{data: {key: two}}")
		replaced := s.awaitReplaced(t, "held", first)
		s.annotate(t, "statefulset/held", settings.Hold, "freeze")
		s.AwaitEvent(t, "held", "Held", "configmap/held")
		s.annotate(t, "statefulset/held", settings.Hold)
		s.AwaitEvent(t, "held", "Normal Evicted", "configmap/held")
		now := s.uids(t, "held")
		for name, uid := range replaced {
			if now[name] != uid {
				t.Errorf("%s had the change, and was evicted once more", name)
			}
		}
	})

	t.Run("the content goes back in the middle", func(t *testing.T) {
		first := s.uids(t, "back")
		s.change(t, "configmap/back", "{data: {key: two}}")
		replaced := s.awaitReplaced(t, "back", first)
		s.change(t, "configmap/back", "{data: {key: one}}")
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			now := s.uids(t, "back")
			for name, uid := range replaced {
				if now[name] == uid {
					return false, name + " was started with content that is gone, and still runs: " + s.remembered(t, "StatefulSet.apps", "back")
				}
			}
			return true, ""
		})
	})
}
