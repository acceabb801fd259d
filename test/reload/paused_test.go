package reload_test

import (
	"testing"
)

// pausedStage is a Deployment that was paused after it was known, with a change that
// waits.
func pausedStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, simple())
	s.awaitObserved(t, web)
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, web, "{spec: {paused: true}}")
	s.awaitObserved(t, web)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Normal Paused", "configmap/app")
	s.checkRollouts(t, "paused", 0, web)
	return s
}

// TestPaused: a change waits for the resume, and is one rollout then.
func TestPaused(t *testing.T) {
	t.Parallel()
	s := pausedStage(t)
	s.change(t, web, "{spec: {paused: null}}")
	s.awaitRollouts(t, web, 1)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "resumed", 1, web)
}

// TestPausedAndEdited: the revision that the resume makes of another writer's template
// is the delivery.
func TestPausedAndEdited(t *testing.T) {
	t.Parallel()
	s := pausedStage(t)
	s.change(t, web, "{spec: {template: {metadata: {annotations: {edited: once}}}}}")
	s.change(t, "configmap/app", "{data: {key: three}}") // also what changes after the edit
	s.checkRollouts(t, "paused, and edited by another writer", 1, web)
	s.change(t, web, "{spec: {paused: null}}")
	s.awaitKnown(t, deploy, "web", versionOf("three"))
	s.checkRollouts(t, "the resume has rolled it out", 1, web)
}

// TestPausedAndEditedBack: a template that is edited and edited back during a pause
// restarts no pod, so that it delivers nothing.
func TestPausedAndEditedBack(t *testing.T) {
	t.Parallel()
	s := pausedStage(t)
	for _, value := range []string{"once", "null"} {
		s.change(t, web, "{spec: {template: {metadata: {annotations: {edited: "+value+"}}}}}")
		s.awaitObserved(t, web)
	}
	s.checkRollouts(t, "edited and edited back", 2, web)
	s.change(t, web, "{spec: {paused: null}}")
	s.awaitRollouts(t, web, 3)
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.checkRollouts(t, "ours", 3, web)
}
