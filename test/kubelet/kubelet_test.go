package kubelet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPlay: the Deployment controller finds one rollout complete, and the other one past its
// deadline.
func TestPlay(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	testkit.RunInBackground(t, func(ctx context.Context) {
		refuses := func(pod *corev1.Pod) bool { return pod.Labels["app"] == "crashes" }
		if err := kubelet.Play(ctx, testkit.NewClient(t, w.Cluster.Kubeconfig()), w.Namespace, refuses); err != nil {
			t.Error(err)
		}
	})
	two, deadline := int32(2), int32(1)
	runs, crashes := testkit.Deployment("runs", "", ""), testkit.Deployment("crashes", "", "")
	crashes.Spec.ProgressDeadlineSeconds = &deadline
	for _, d := range []*appsv1.Deployment{runs, crashes} {
		d.Spec.Replicas, d.Spec.Template.Spec.SchedulerName = &two, kubelet.Scheduler
		w.Create(t, d)
	}
	await(t, w, "runs", "NewReplicaSetAvailable")
	await(t, w, "crashes", "ProgressDeadlineExceeded")
	if got := w.Deployment(t, "runs").Status.AvailableReplicas; got != two {
		t.Errorf("%d pods of deployment/runs are available, want %d", got, two)
	}
	if got := w.Deployment(t, "crashes").Status.AvailableReplicas; got != 0 {
		t.Errorf("%d pods of deployment/crashes are available, want none", got)
	}

	w.Patch(t, &appsv1.Deployment{}, "runs", `{"spec":{"template":{"metadata":{"annotations":{"restarted":"now"}}}}}`)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		d := w.Deployment(t, "runs")
		s := d.Status
		done := s.ObservedGeneration == d.Generation && s.UpdatedReplicas == two && s.Replicas == two && s.AvailableReplicas == two
		return done, fmt.Sprintf("the second rollout isn't complete: %+v", s)
	})
}

func await(t *testing.T, w *testkit.World, deployment, reason string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		conditions := w.Deployment(t, deployment).Status.Conditions
		return slices.ContainsFunc(conditions, func(c appsv1.DeploymentCondition) bool { return c.Reason == reason }),
			fmt.Sprintf("%s has the conditions %+v, want %s", deployment, conditions, reason)
	})
}
