package reload_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// pair is a workload that uses a ConfigMap and a Secret of its own name.
func pair(kind, name string) string {
	return configMap(name, "key: one") + secret(name, "key: one") + workload(kind, name, auto, uses("configmap/"+name, "secret/"+name))
}

// pairs is a stage of such Deployments, all on record.
func pairs(t testing.TB, names ...string) (*stage, *testkit.Controller) {
	t.Helper()
	var manifest strings.Builder
	for _, name := range names {
		manifest.WriteString(pair("Deployment", name))
	}
	s := newStage(t, manifest.String())
	for _, name := range names {
		s.awaitObserved(t, "deployment/"+name)
	}
	c := s.run(t)
	for _, name := range names {
		s.awaitKnown(t, deploy, name, "configmap/"+name, "secret/"+name)
	}
	return s, c
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

// TestSequenceStaysBack holds "what was taken back stays back" against restarts, holds, and
// objects that are deleted and made again.
func TestSequenceStaysBack(t *testing.T) {
	t.Parallel()
	s, c := pairs(t, "detour", "deleted", "orphan", "asked", "scaled", "down")

	t.Run("held, changed, changed back to what was rejected, the hold ends", func(t *testing.T) {
		const ref = "deployment/detour"
		s.takeBack(t, "detour")
		s.annotate(t, ref, settings.Hold, "freeze")
		s.change(t, "configmap/detour", "{data: {key: three}}")
		s.AwaitEvent(t, "detour", "Held", "configmap/detour")
		s.change(t, "configmap/detour", "{data: {key: two}}")
		s.pass(t)
		s.annotate(t, ref, settings.Hold)
		s.change(t, "secret/detour", "{stringData: {key: two}}")
		s.checkRollouts(t, "the content is the one that was rejected", 2, ref)
	})

	t.Run("orphaned, made again, another source changes", func(t *testing.T) {
		const ref = "deployment/orphan"
		s.takeBack(t, "orphan")
		s.awaitLaterSecond(t)
		s.orphan(t, ref)
		s.make(t, deployment("orphan", auto, uses("configmap/orphan", "secret/orphan")))
		s.awaitObserved(t, ref)
		s.change(t, "secret/orphan", "{stringData: {key: two}}")
		s.checkRollouts(t, "its pods are those of the one before", 0, ref)
		s.change(t, "configmap/orphan", "{data: {key: three}}")
		s.awaitRollouts(t, ref, 1)
	})

	t.Run("the source is deleted, another one changes, it is made again as it was", func(t *testing.T) {
		s.takeBack(t, "deleted")
		s.delete(t, "configmap/deleted")
		s.pass(t)
		s.change(t, "secret/deleted", "{stringData: {key: two}}")
		s.pass(t)
		s.make(t, configMap("deleted", "key: two"))
		s.checkRollouts(t, "the content is the one that was rejected", 2, "deployment/deleted")
	})

	t.Run("the annotation is taken away and put back, which begins anew", func(t *testing.T) {
		s.takeBack(t, "asked")
		s.annotate(t, "deployment/asked", settings.Reload)
		s.pass(t)
		s.annotate(t, "deployment/asked", settings.Reload, "auto")
		s.awaitKnown(t, deploy, "asked", "configmap/asked")
		s.change(t, "secret/asked", "{stringData: {key: two}}")
		s.awaitRollouts(t, "deployment/asked", 3)
	})

	t.Run("undone or scaled while the controller is down, and a Secret rotates", func(t *testing.T) {
		s.takeBack(t, "scaled")
		s.change(t, "configmap/down", "{data: {key: two}}")
		s.awaitRollouts(t, "deployment/down", 1)
		s.awaitKnown(t, deploy, "down", versionOf("two"))
		s.awaitObserved(t, "deployment/down")
		kill(t, c)
		s.undo(t, "down", "")
		s.change(t, "secret/down", "{stringData: {key: two}}")
		s.awaitObserved(t, "deployment/down")
		for _, replicas := range []string{"2", "0"} {
			s.change(t, "deployment/scaled", "{spec: {replicas: "+replicas+"}}")
			s.awaitObserved(t, "deployment/scaled")
		}
		s.change(t, "secret/scaled", "{stringData: {key: two}}")
		s.run(t)
		s.checkRollouts(t, "ours and the person's", 2, "deployment/down", "deployment/scaled")
		s.awaitKnown(t, deploy, "down", "back:")
	})
}

// TestSequenceRollbackTookNothingBack: a release of ConfigMap and template is rolled back
// together, which delivers both; later an edit is undone, which takes back the edit alone.
func TestSequenceRollbackTookNothingBack(t *testing.T) {
	t.Parallel()
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	var manifest strings.Builder
	for _, kind := range kinds {
		manifest.WriteString(pair(kind, strings.ToLower(kind)))
	}
	s := newStage(t, manifest.String())
	for _, kind := range kinds {
		name := strings.ToLower(kind)
		s.awaitObserved(t, name+"/"+name)
		s.annotate(t, name+"/"+name, settings.Quiet, "10s")
	}
	s.run(t)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			name, groupKind := strings.ToLower(kind), kind+".apps"
			ref := name + "/" + name
			s.awaitKnown(t, groupKind, name, "configmap/"+name, "secret/"+name)
			edit := func(fields string) {
				s.awaitLaterSecond(t) // DaemonSets tell their revisions apart by time
				s.change(t, ref, "{spec: {template: {metadata: {annotations: {"+fields+"}}}}}")
				s.awaitObserved(t, ref)
			}
			s.change(t, "configmap/"+name, "{data: {key: two}}")
			edit("image: bad")
			s.awaitKnown(t, groupKind, name, versionOf("two"), "from:")
			s.change(t, "configmap/"+name, "{data: {key: one}}")
			edit("image: null")
			s.awaitKnown(t, groupKind, name, versionOf("one"), "from:")
			s.checkNoEvent(t, name, "Undone")
			edit("edited: once")
			s.pass(t)
			edit("edited: null")
			s.checkNoEvent(t, name, "Undone")
			before := s.rollouts(t, ref)
			s.annotate(t, ref, settings.Quiet, testkit.Quiet)
			s.change(t, "secret/"+name, "{stringData: {key: two}}")
			s.checkRollouts(t, "the undo took back the edit, not the ConfigMap", before+1, ref)
		})
	}
}
