package testkit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// StartPods does what a kubelet does with the pods of a Deployment: they start now. No node has them, so
// that no other kubelet does.
func (w *World) StartPods(t testing.TB, name string) {
	t.Helper()
	labtest.Eventually(t, Patience, func() (bool, string) {
		all := &corev1.PodList{}
		if err := w.Client.List(t.Context(), all, client.InNamespace(w.Namespace), client.MatchingLabels{"app": name}); err != nil {
			return false, err.Error()
		}
		for _, pod := range all.Items {
			pod.Status.StartTime = &pod.CreationTimestamp
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}}}}
			if err := w.Client.Status().Update(t.Context(), &pod); err != nil {
				return false, err.Error()
			}
		}
		return len(all.Items) > 0, name + " doesn't have pods"
	})
}
