package podrefs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Named lists every source that the pod names, sorted: those that [Extract] finds, and
// the Secrets that are read for the pod to pull its images and mount its volumes. Without
// any of them a pod can't be created again.
func Named(spec *corev1.PodSpec) []input.ID {
	found := refs{}
	for _, ref := range Extract(spec) {
		found.add(ref)
	}
	for _, secret := range spec.ImagePullSecrets {
		found.add(Ref{Source: input.Secret(secret.Name)})
	}
	for i := range spec.Volumes {
		for _, name := range credentials(&spec.Volumes[i]) {
			found.add(Ref{Source: input.Secret(name)})
		}
	}
	var names []input.ID
	for _, ref := range found.sorted() {
		names = append(names, ref.Source)
	}
	return names
}

// credentials are the Secrets with which the volume's driver identifies itself.
func credentials(v *corev1.Volume) []string {
	var names []string
	if v.AzureFile != nil {
		names = append(names, v.AzureFile.SecretName)
	}
	for _, ref := range slices.Concat(
		local(v.CephFS, func(s *corev1.CephFSVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.Cinder, func(s *corev1.CinderVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.CSI, func(s *corev1.CSIVolumeSource) *corev1.LocalObjectReference { return s.NodePublishSecretRef }),
		local(v.FlexVolume, func(s *corev1.FlexVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.ISCSI, func(s *corev1.ISCSIVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.RBD, func(s *corev1.RBDVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.ScaleIO, func(s *corev1.ScaleIOVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
		local(v.StorageOS, func(s *corev1.StorageOSVolumeSource) *corev1.LocalObjectReference { return s.SecretRef }),
	) {
		names = append(names, ref.Name)
	}
	return names
}

// local is the reference of a volume's source, nil if either is missing.
func local[T any](source *T, ref func(*T) *corev1.LocalObjectReference) []*corev1.LocalObjectReference {
	if source == nil || ref(source) == nil {
		return nil
	}
	return []*corev1.LocalObjectReference{ref(source)}
}
