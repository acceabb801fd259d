package reload_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestTesterSequences runs everyday actions in combination on one stage. Each workload and
// its sources bear the name of the sequence.
func TestTesterSequences(t *testing.T) {
	t.Parallel()
	plain := "containers: [{name: app, image: app}]"
	optional := "containers: [{name: app, image: app, envFrom: [{configMapRef: {name: optional, optional: true}}]}]"
	both := func(name string) string {
		return configMap(name, "key: one") + secret(name, "key: one") + deployment(name, auto, uses("configmap/"+name, "secret/"+name))
	}
	s := newStage(t, both("missing")+both("orphan")+both("asked")+both("verbose")+
		both("rollback")+both("pause")+
		configMap("optional", "key: one")+deployment("optional", auto, optional)+
		configMap("rules-a", "key: one")+deployment("pattern", settings.Reload+": configmap/rules-*", plain))
	names := []string{"missing", "orphan", "asked", "verbose", "rollback", "pause", "optional"}
	for _, name := range names {
		s.awaitObserved(t, "deployment/"+name)
	}
	s.annotate(t, "deployment/rollback", settings.Quiet, "10s")
	c := s.run(t)
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "configmap/"+name)
	}
	s.awaitKnown(t, deploy, "pattern", "configmap/rules-a")

	t.Run("no pod is restarted onto a missing source, also for another one", func(t *testing.T) {
		s.delete(t, "configmap/missing")
		s.pass(t)
		s.change(t, "secret/missing", "{stringData: {key: two}}")
		s.checkRollouts(t, "new pods could not start", 0, "deployment/missing")
		s.make(t, configMap("missing", "key: one"))
		s.awaitRollouts(t, "deployment/missing", 1)
	})

	t.Run("an optional source is gone during a restart and comes back as it was", func(t *testing.T) {
		s.delete(t, "configmap/optional")
		s.pass(t)
		s.change(t, "deployment/optional", "{spec: {template: {metadata: {annotations: {restarted: now}}}}}")
		s.awaitObserved(t, "deployment/optional")
		s.pass(t)
		s.make(t, configMap("optional", "key: one"))
		s.checkRollouts(t, "the pods have started without it", 2, "deployment/optional")
	})

	t.Run("a source that refused a pattern refuses no more", func(t *testing.T) {
		s.make(t, strings.Replace(configMap("rules-b", "key: one"), "name: rules-b", "name: rules-b, annotations: {"+settings.Reload+": never}", 1))
		s.checkRollouts(t, "it refuses", 0, "deployment/pattern")
		s.annotate(t, "configmap/rules-b", settings.Reload)
		s.awaitKnown(t, deploy, "pattern", "configmap/rules-b")
		s.checkRollouts(t, "what begins to be followed restarts no pod", 0, "deployment/pattern")
		s.change(t, "configmap/rules-b", "{data: {key: two}}")
		s.awaitRollouts(t, "deployment/pattern", 1)
	})

	t.Run("a release is rolled back, and a later edit is undone", func(t *testing.T) {
		const ref = "deployment/rollback"
		edit := func(fields string) {
			s.change(t, ref, "{spec: {template: {metadata: {annotations: {"+fields+"}}}}}")
			s.awaitObserved(t, ref)
		}
		s.change(t, "configmap/rollback", "{data: {key: two}}")
		edit("image: bad")
		s.awaitKnown(t, deploy, "rollback", versionOf("two"), "from:1")
		s.change(t, "configmap/rollback", "{data: {key: one}}")
		edit("image: null")
		s.awaitKnown(t, deploy, "rollback", versionOf("one"), "from:2")
		s.checkNoEvent(t, "rollback", "Undone")
		edit("edited: once")
		s.pass(t)
		edit("edited: null")
		s.checkNoEvent(t, "rollback", "Undone")
		s.annotate(t, ref, settings.Quiet, "200ms")
		s.change(t, "secret/rollback", "{stringData: {key: two}}")
		s.checkRollouts(t, "the undo took back the edit, not the ConfigMap", 5, ref)
	})

	t.Run("paused, a change, the reference is taken away and put back, resumed", func(t *testing.T) {
		const ref = "deployment/pause"
		s.change(t, ref, "{spec: {paused: true}}")
		s.awaitObserved(t, ref)
		s.change(t, "configmap/pause", "{data: {key: two}}")
		s.AwaitEvent(t, "pause", "Paused", "configmap/pause")
		s.change(t, ref, "{spec: {template: {spec: {"+plain+"}}}}")
		s.awaitObserved(t, ref)
		s.pass(t)
		s.change(t, ref, "{spec: {template: {spec: {"+uses("configmap/pause", "secret/pause")+"}}}}")
		s.awaitObserved(t, ref)
		s.pass(t)
		s.change(t, ref, "{spec: {paused: null}}")
		s.checkRollouts(t, "no pod was restarted since the change", 3, ref)
	})

	t.Run("taken back, orphaned, made again, and another source changes", func(t *testing.T) {
		s.takeBack(t, "orphan")
		s.awaitLaterSecond(t)
		s.orphan(t, "deployment/orphan")
		s.make(t, deployment("orphan", auto, uses("configmap/orphan", "secret/orphan")))
		s.awaitObserved(t, "deployment/orphan")
		s.change(t, "secret/orphan", "{stringData: {key: two}}")
		s.checkRollouts(t, "what was taken back stays back", 0, "deployment/orphan")
		s.change(t, "configmap/orphan", "{data: {key: three}}")
		s.awaitRollouts(t, "deployment/orphan", 1)
	})

	t.Run("taken back, the annotation is taken away and put back, another source changes", func(t *testing.T) {
		s.takeBack(t, "asked")
		s.annotate(t, "deployment/asked", settings.Reload)
		s.pass(t)
		s.annotate(t, "deployment/asked", settings.Reload, "auto")
		s.awaitKnown(t, deploy, "asked", "configmap/asked")
		s.change(t, "secret/asked", "{stringData: {key: two}}")
		s.checkRollouts(t, "what was taken back stays back", 2, "deployment/asked")
	})

	t.Run("a hold of 100 KiB, a Secret rotates, killed, the hold ends meanwhile", func(t *testing.T) {
		const ref = "deployment/verbose"
		s.annotate(t, ref, settings.Hold, strings.Repeat("freeze ", 100<<10/7))
		s.change(t, "secret/verbose", "{stringData: {key: two}}")
		s.AwaitEvent(t, "verbose", "Held", "secret/verbose")
		s.checkRollouts(t, "held", 0, ref)
		kill(t, c)
		s.annotate(t, ref, settings.Hold)
		s.run(t)
		s.awaitRollouts(t, ref, 1)
		s.checkRollouts(t, "one rollout for what has gathered", 1, ref)
	})
}

// takeBack rolls a change of the ConfigMap out and undoes that.
func (s *stage) takeBack(t testing.TB, name string) {
	t.Helper()
	s.change(t, "configmap/"+name, "{data: {key: two}}")
	s.awaitRollouts(t, "deployment/"+name, 1)
	s.awaitObserved(t, "deployment/"+name)
	s.undo(t, name, "")
	s.awaitKnown(t, deploy, name, "back:")
}
