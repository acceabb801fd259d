package doctor

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestUnprobed: a workload whose failures only show when its process ends.
func TestUnprobed(t *testing.T) {
	t.Parallel()
	none, probed := corev1.Container{Name: "web"}, corev1.Container{Name: "web", ReadinessProbe: &corev1.Probe{}}
	live := corev1.Container{Name: "web", LivenessProbe: &corev1.Probe{}}
	deployment := func(containers ...corev1.Container) client.Object {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = containers
		return d
	}
	job := &batchv1.CronJob{}
	job.Spec.JobTemplate.Spec.Template.Spec.Containers = []corev1.Container{none}
	cases := map[string]struct {
		reason string
		kind   kube.Kind
		object client.Object
		want   bool
	}{
		"None":    {"it is ready once its process has started", kube.Deployment(), deployment(none), true},
		"Probed":  {"it says when it is ready", kube.Deployment(), deployment(probed), false},
		"Helper":  {"one beside the application needs none", kube.Deployment(), deployment(probed, none), false},
		"Live":    {"a liveness probe restarts, and doesn't keep a rollout from ending", kube.Deployment(), deployment(live), true},
		"Empty":   {"its template is elsewhere", kube.Deployment(), deployment(), false},
		"CronJob": {"its pods end, and are never ready for anybody", kube.CronJob(), job, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, ok := workloadOf(tc.kind, tc.object, settings.Native{}, nil)
			if !ok || w.Unprobed != tc.want {
				t.Errorf("%s: %t (read: %t), want %t", tc.reason, w.Unprobed, ok, tc.want)
			}
		})
	}
}
