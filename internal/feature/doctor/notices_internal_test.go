package doctor

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestMountedSecret: the file of targets leads to the Secret, as the chart mounts it.
func TestMountedSecret(t *testing.T) {
	t.Parallel()
	d := &appsv1.Deployment{}
	d.Namespace = "lockstep-system"
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "hooks", MountPath: "/etc/hooks"}, {Name: "targets", MountPath: "/etc/targets/"}, {Name: "files", MountPath: "/files"}}}},
		Volumes: []corev1.Volume{
			{Name: "hooks", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hooks"}}},
			{Name: "targets", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "notify", Items: []corev1.KeyToPath{{Key: "all", Path: "targets.yaml"}}}}},
			{Name: "files", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	for file, want := range map[string]string{
		"/etc/targets/targets.yaml": "lockstep-system/notify all",
		"/etc/hooks/secrets":        "lockstep-system/hooks secrets",
		"/files/targets.yaml":       "",
		"/elsewhere":                "",
	} {
		got := ""
		if at, key, found := mountedSecret(d, file); found {
			got = at.String() + " " + key
		}
		if got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
