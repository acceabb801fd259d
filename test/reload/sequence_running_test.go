package reload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// withPods makes a manifest of a workload ask for pods.
func withPods(manifest string, replicas int, more string) string {
	return strings.Replace(manifest, "replicas: 0", fmt.Sprintf("replicas: %d%s", replicas, more), 1)
}

// TestSequenceDeliveredMeansRunning holds "delivered means that pods run it" against
// templates that are changed and changed back, so that no pod is restarted.
func TestSequenceDeliveredMeansRunning(t *testing.T) {
	t.Parallel()
	const grace = ", terminationGracePeriodSeconds: 0"
	const onDelete = ", updateStrategy: {type: OnDelete}"
	optional := "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: optional, optional: true}}]}]"
	s := newStage(t, secret("stuck", "key: one")+secret("byhand", "key: one")+configMap("release", "key: one")+
		configMap("redo", "key: one")+configMap("optional", "key: one")+configMap("pause", "key: one")+configMap("keys", "key: one, other: one")+configMap("earlier", "key: one")+
		withPods(deployment("stuck", auto, uses("secret/stuck")+grace), 2, "")+
		withPods(deployment("earlier", auto, uses("configmap/earlier")+grace), 2, "")+
		withPods(deployment("release", auto+", "+settings.Quiet+": 1h", uses("configmap/release")+grace), 2, "")+
		withPods(workload("StatefulSet", "byhand", auto, uses("secret/byhand")+grace), 1, onDelete)+
		withPods(workload("StatefulSet", "redo", auto, uses("configmap/redo")+grace), 1, onDelete)+
		deployment("optional", auto, optional)+deployment("pause", auto, uses("configmap/pause"))+deployment("keys", auto, oneKey("key")),
		labtest.KWOK)
	s.awaitReady(t, "stuck", 2)
	s.awaitReady(t, "release", 2)
	s.awaitReady(t, "earlier", 2)
	s.awaitReady(t, "byhand", 1)
	s.awaitReady(t, "redo", 1)
	s.run(t)
	s.awaitKnown(t, deploy, "stuck", "secret/stuck")
	s.awaitKnown(t, deploy, "release", "configmap/release")
	s.awaitKnown(t, deploy, "earlier", "configmap/earlier")
	s.awaitKnown(t, "StatefulSet.apps", "byhand", "secret/byhand")
	s.awaitKnown(t, "StatefulSet.apps", "redo", "configmap/redo")
	for _, name := range []string{"optional", "pause", "keys"} {
		s.awaitObserved(t, "deployment/"+name)
		s.awaitKnown(t, deploy, name, "configmap/"+name)
	}

	t.Run("held, a rollout is stuck, a Secret rotates, the rollout is undone, the hold ends", func(t *testing.T) {
		const ref = "deployment/stuck"
		first := s.uids(t, "stuck")
		s.annotate(t, ref, settings.Hold, "freeze")
		s.change(t, ref, "{spec: {template: {spec: {schedulerName: none}}}}")
		s.awaitPods(t, ref, "unavailableReplicas", 1)
		s.change(t, "secret/stuck", "{stringData: {key: two}}")
		s.AwaitEvent(t, "stuck", "Held", "secret/stuck")
		s.change(t, ref, "{spec: {template: {spec: {schedulerName: null}}}}")
		s.awaitObserved(t, ref)
		s.awaitPods(t, ref, "updatedReplicas", 2)
		s.awaitPods(t, ref, "replicas", 2)
		if diff := cmp.Diff(first, s.uids(t, "stuck")); diff != "" {
			t.Fatalf("other pods run than before (-before +now):\n%s", diff)
		}
		s.annotate(t, ref, settings.Hold)
		s.awaitRollouts(t, ref, 3) // the stuck one, the undo, and one for the Secret
	})

	t.Run("a release of source and template is stuck, and both are rolled back", func(t *testing.T) {
		const ref = "deployment/release"
		first := s.uids(t, "release")
		s.change(t, "configmap/release", "{data: {key: two}}")
		s.change(t, ref, "{spec: {template: {spec: {schedulerName: none}}}}")
		s.awaitPods(t, ref, "unavailableReplicas", 1)
		s.awaitKnown(t, deploy, "release", versionOf("two"))
		s.change(t, "configmap/release", "{data: {key: one}}")
		s.change(t, ref, "{spec: {template: {spec: {schedulerName: null}}}}")
		s.awaitObserved(t, ref)
		s.awaitKnown(t, deploy, "release", versionOf("one"), "from:")
		s.checkRollouts(t, "the pods have what was rolled back to", 2, ref)
		if diff := cmp.Diff(first, s.uids(t, "release")); diff != "" {
			t.Errorf("other pods run than before (-before +now):\n%s", diff)
		}
	})

	t.Run("OnDelete and held, an edit, a Secret rotates, the edit is undone, the hold ends", func(t *testing.T) {
		const ref = "statefulset/byhand"
		s.annotate(t, ref, settings.Hold, "freeze")
		s.change(t, ref, "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
		s.awaitObserved(t, ref)
		s.change(t, "secret/byhand", "{stringData: {key: two}}")
		s.AwaitEvent(t, "byhand", "Held", "secret/byhand")
		s.change(t, ref, "{spec: {template: {metadata: {annotations: {edited: null}}}}}")
		s.awaitObserved(t, ref)
		s.annotate(t, ref, settings.Hold)
		s.awaitRollouts(t, ref, 3)
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

	t.Run("an optional source is gone during a restart and comes back as it was", func(t *testing.T) {
		s.delete(t, "configmap/optional")
		s.pass(t)
		s.change(t, "deployment/optional", "{spec: {template: {metadata: {annotations: {restarted: now}}}}}")
		s.awaitObserved(t, "deployment/optional")
		s.pass(t)
		s.make(t, configMap("optional", "key: one"))
		s.awaitRollouts(t, "deployment/optional", 2) // its pods have started without it
	})

	t.Run("paused, a change, the reference is taken away and put back, resumed", func(t *testing.T) {
		s.changeDuringPause(t, "pause", "containers: [{name: app, image: app}]", uses("configmap/pause"))
	})

	t.Run("paused, a change, another key is used and then the first again, resumed", func(t *testing.T) {
		s.changeDuringPause(t, "keys", oneKey("other"), oneKey("key"))
	})

	t.Run("edited, paused, set back to the earlier revision, a change, resumed", func(t *testing.T) {
		const ref = "deployment/earlier"
		s.change(t, ref, "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
		s.awaitObserved(t, ref)
		s.awaitPods(t, ref, "updatedReplicas", 2)
		s.awaitPods(t, ref, "replicas", 2)
		s.change(t, ref, "{spec: {paused: true}}")
		s.awaitObserved(t, ref)
		s.change(t, ref, "{spec: {template: {metadata: {annotations: {edited: null}}}}}")
		s.awaitObserved(t, ref)
		s.change(t, "configmap/earlier", "{data: {key: two}}")
		s.AwaitEvent(t, "earlier", "Paused", "configmap/earlier")
		s.change(t, ref, "{spec: {paused: null}}")
		s.awaitKnown(t, deploy, "earlier", versionOf("two"), "from:")
		s.checkRollouts(t, "the resume is the delivery", 2, ref)
	})
}

// oneKey is a pod specification that reads one key of the ConfigMap "keys".
func oneKey(key string) string {
	return "containers: [{name: app, image: app, env: [{name: KEY, valueFrom: {configMapKeyRef: {name: keys, key: " + key + "}}}]}]"
}

// changeDuringPause changes the ConfigMap of a Deployment that is paused, then its
// template and back, and resumes it: no pod was restarted, so that a rollout is due.
func (s *stage) changeDuringPause(t *testing.T, name, other, pod string) {
	t.Helper()
	ref := "deployment/" + name
	s.change(t, ref, "{spec: {paused: true}}")
	s.awaitObserved(t, ref)
	s.change(t, "configmap/"+name, "{data: {key: two}}")
	s.AwaitEvent(t, name, "Paused", "configmap/"+name)
	for _, spec := range []string{other, pod} {
		s.change(t, ref, "{spec: {template: {spec: {"+spec+"}}}}")
		s.awaitObserved(t, ref)
		s.pass(t)
	}
	s.change(t, ref, "{spec: {paused: null}}")
	s.awaitRollouts(t, ref, 3)
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

// TestSequenceEvictions holds "pods that are older than the change are evicted" against what
// happens in the middle of a series.
func TestSequenceEvictions(t *testing.T) {
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
		// While the quota lets no new pod in, the series can't go on, however slow the hold is.
		s.full(t, true)
		s.change(t, "configmap/held", "{data: {key: two}}")
		labtest.Eventually(t, testkit.Patience, func() (bool, string) { return len(s.uids(t, "held")) < len(first), "no pod of held was evicted" })
		s.annotate(t, "statefulset/held", settings.Hold, "freeze")
		s.AwaitEvent(t, "held", "Held", "configmap/held")
		s.full(t, false)
		replaced := s.awaitReplaced(t, "held", first)
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
