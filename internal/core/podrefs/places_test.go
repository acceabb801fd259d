package podrefs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
)

// TestPlaces: people find the place in their manifest by these words.
func TestPlaces(t *testing.T) {
	t.Parallel()
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "migrate", EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("app")}},
		}}},
		Containers: []corev1.Container{{
			Name: "web",
			Env: []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("app"), Key: "level"},
			}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "v", SubPath: "tls.crt"}},
		}},
		Volumes: []corev1.Volume{
			volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls", Items: []corev1.KeyToPath{{Key: "tls.key"}, {Key: "tls.crt"}}}}),
		},
	}
	spec.Volumes[0].Name = "v"
	want := map[input.ID][]string{
		input.ConfigMap("app"): {"env of container migrate (all keys)", "env LEVEL of container web (key level)"},
		input.Secret("tls"):    {"volume v, by sub-path (keys tls.crt, tls.key)"},
	}
	if diff := cmp.Diff(want, podrefs.Places(spec)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}
