package kube

import (
	"github.com/lockstep-dev/lockstep/internal/core/patch"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// ShowsVariable reports whether the template shows versions in an environment
// variable, and not in an annotation.
func (w *Workload) ShowsVariable() bool {
	return !w.Annotated && w.Place(settings.InputsVariable).Index >= 0
}

// PatchTarget is the object that a patch of the template goes to.
func (w *Workload) PatchTarget() patch.Target {
	return patch.Target{UID: w.Target.UID, ResourceVersion: w.Target.ResourceVersion, Template: w.Target.Kind.Template}
}

// Place finds where an environment variable goes: to the container that has it
// already, else to the first one.
func (w *Workload) Place(name string) patch.Variable {
	for i, c := range w.Containers {
		if m, ok := c.Markers[name]; ok {
			return patch.Variable{Name: name, Container: i, Index: m.Index}
		}
	}
	return patch.Variable{Name: name, Index: -1, First: len(w.Containers) > 0 && w.Containers[0].EnvCount == 0}
}
