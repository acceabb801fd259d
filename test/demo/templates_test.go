package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestTemplatesAreCounted: a rollout is a changed template; an annotation of the
// Deployment itself, which raises its generation too, is none.
func TestTemplatesAreCounted(t *testing.T) {
	d := &appsv1.Deployment{}
	seen := &templates{}
	change := func(f func()) {
		d = d.DeepCopy()
		d.Generation++
		f()
		seen.see(d)
	}
	change(func() {})
	change(func() { d.Annotations = map[string]string{settings.Hold: "release freeze"} })
	change(func() { d.Spec.Template.Annotations = map[string]string{settings.Inputs: "configmap/a~1"} })
	change(func() { d.Annotations = nil })
	change(func() { d.Spec.Template.Annotations = map[string]string{settings.Inputs: "configmap/a~2"} })
	want := []revision{{1, "template-1", ""}, {2, "template-2", "configmap/a~1"}, {3, "template-3", "configmap/a~2"}}
	if diff := cmp.Diff(want, seen.had, cmp.AllowUnexported(revision{})); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}
