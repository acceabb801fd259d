package stakater

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// classAttribute is the volume attribute in which a CSI volume names its SecretProviderClass.
const classAttribute = "secretProviderClass"

// containerOf finds the regular container that shows changes of a source to which the pod
// refers: the first one that mounts it, then the first one with a variable of it. For a source
// that only init containers use it is the first regular container.
func containerOf(spec *corev1.PodSpec, s Source) (container int, ok bool) {
	for _, uses := range []func(corev1.Container) bool{s.mountedBy(spec.Volumes), s.loadedBy} {
		if i := slices.IndexFunc(spec.Containers, uses); i >= 0 {
			return i, true
		}
		if slices.ContainsFunc(spec.InitContainers, uses) {
			return 0, true
		}
	}
	return 0, false
}

// mountedBy reports whether a container mounts the first of the volumes with the source. The
// original never looks at a second one.
func (s Source) mountedBy(volumes []corev1.Volume) func(corev1.Container) bool {
	first := slices.IndexFunc(volumes, s.fills)
	return func(c corev1.Container) bool {
		return first >= 0 && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == volumes[first].Name
		})
	}
}

// fills reports whether the volume contains the source.
func (s Source) fills(v corev1.Volume) bool {
	switch s.Type {
	case ConfigMap:
		return v.ConfigMap != nil && v.ConfigMap.Name == s.Name || s.isProjected(v)
	case Secret:
		return v.Secret != nil && v.Secret.SecretName == s.Name || s.isProjected(v)
	default:
		return v.CSI != nil && v.CSI.VolumeAttributes[classAttribute] == s.Name
	}
}

func (s Source) isProjected(v corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
		if s.Type == ConfigMap {
			return p.ConfigMap != nil && p.ConfigMap.Name == s.Name
		}
		return p.Secret != nil && p.Secret.Name == s.Name
	})
}

// loadedBy reports whether the container has a variable of the source.
func (s Source) loadedBy(c corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && s.isKeyOf(e.ValueFrom) }) ||
		slices.ContainsFunc(c.EnvFrom, s.isAllOf)
}

func (s Source) isKeyOf(from *corev1.EnvVarSource) bool {
	switch s.Type {
	case ConfigMap:
		return from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name == s.Name
	case Secret:
		return from.SecretKeyRef != nil && from.SecretKeyRef.Name == s.Name
	default:
		return false
	}
}

func (s Source) isAllOf(from corev1.EnvFromSource) bool {
	switch s.Type {
	case ConfigMap:
		return from.ConfigMapRef != nil && from.ConfigMapRef.Name == s.Name
	case Secret:
		return from.SecretRef != nil && from.SecretRef.Name == s.Name
	default:
		return false
	}
}
