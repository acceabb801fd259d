package testkit

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// StartPods does what a kubelet does with the pods of a Deployment, once all replicas have one of the
// current template: they start now. No node has them, so that no other kubelet does.
func (w *World) StartPods(t testing.TB, name string) {
	t.Helper()
	labtest.Eventually(t, Patience, func() (bool, string) {
		d, all := &appsv1.Deployment{}, &corev1.PodList{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, d); err != nil {
			return false, err.Error()
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas == 0 || s.UpdatedReplicas < *d.Spec.Replicas {
			return false, fmt.Sprintf("%s has %d pods of its template, want %d", name, s.UpdatedReplicas, *d.Spec.Replicas)
		}
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
		return true, ""
	})
}
