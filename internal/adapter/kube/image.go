package kube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

// ContainerImage is the image of a container. The position holds for the resource
// version that the workload was read at.
type ContainerImage struct {
	Name, Image string
	// Position is the container's index in its list: the init containers when Init is true.
	Position int
	Init     bool
}

// PullSettings are a pod template's settings for pulling its images.
type PullSettings struct {
	// Secrets are the template's pull secrets, as far as [podrefs.PullSecrets] returns them. The
	// ServiceAccount may list more.
	Secrets        []string
	ServiceAccount string
	// OS and Architecture are those that the node selector requires, empty when it allows any.
	OS, Architecture string
}

// Allows reports whether the node selector allows nodes of a platform.
func (s PullSettings) Allows(system, architecture string) bool {
	return (s.OS == "" || s.OS == system) && (s.Architecture == "" || s.Architecture == architecture)
}

// ImageOf finds the image of a container.
func (w *Workload) ImageOf(container string) (ContainerImage, bool) {
	for _, i := range w.Images {
		if i.Name == container {
			return i, true
		}
	}
	return ContainerImage{}, false
}

func imagesOf(spec *corev1.PodSpec) []ContainerImage {
	list := make([]ContainerImage, 0, len(spec.Containers)+len(spec.InitContainers))
	for i, c := range spec.Containers {
		list = append(list, ContainerImage{Name: c.Name, Image: c.Image, Position: i})
	}
	for i, c := range spec.InitContainers {
		list = append(list, ContainerImage{Name: c.Name, Image: c.Image, Position: i, Init: true})
	}
	return list
}

func pullSettingsOf(spec *corev1.PodSpec) PullSettings {
	s := PullSettings{
		Secrets: podrefs.PullSecrets(spec.ImagePullSecrets), ServiceAccount: spec.ServiceAccountName,
		OS: spec.NodeSelector[corev1.LabelOSStable], Architecture: spec.NodeSelector[corev1.LabelArchStable],
	}
	if s.ServiceAccount == "" {
		s.ServiceAccount = "default"
	}
	return s
}
