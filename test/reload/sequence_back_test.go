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
	c := s.runProcess(t)
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

// TestSequenceRollbackTookNothingBack: a release of ConfigMap and template is rolled back
// together, which delivers both; later an edit is undone, which reverts the edit alone.
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
		s.annotate(t, name+"/"+name, settings.Quiet, "1h")
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
			s.checkRollouts(t, "the undo reverted the edit, not the ConfigMap", before+1, ref)
		})
	}
}
