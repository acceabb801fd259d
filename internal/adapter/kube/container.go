package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Container is the part of a container that Lockstep keeps: the positions of markers in its
// environment. They hold for the resource version that the workload was read at.
type Container struct {
	Name string
	// EnvCount is the number of variables in the container's environment.
	EnvCount int
	// Markers are the variables that a reloader wrote, by name.
	Markers map[string]Marker
}

// Marker is an environment variable that a reloader wrote.
type Marker struct {
	Index int
	Value string
	// Foreign is true when the variable has a valueFrom, so Lockstep can't have written it.
	Foreign bool
}

// isMarker reports whether Lockstep or a predecessor writes a variable of this name.
func isMarker(name string) bool {
	return name == settings.InputsVariable || strings.HasPrefix(name, settings.LegacyVariablePrefix)
}

func containersOf(spec *corev1.PodSpec) []Container {
	list := make([]Container, len(spec.Containers))
	for i, c := range spec.Containers {
		list[i] = Container{Name: c.Name, EnvCount: len(c.Env)}
		for j, e := range c.Env {
			if !isMarker(e.Name) {
				continue
			}
			if list[i].Markers == nil {
				list[i].Markers = map[string]Marker{}
			}
			list[i].Markers[e.Name] = Marker{Index: j, Value: e.Value, Foreign: e.ValueFrom != nil}
		}
	}
	return list
}

func textInEnvironment(containers []Container) string {
	for _, c := range containers {
		if m, ok := c.Markers[settings.InputsVariable]; ok && !m.Foreign && len(m.Value) <= input.MaxShown {
			return m.Value
		}
	}
	return ""
}
