package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSafeRolloutStory: a change that breaks every workload reaches one of five. The next version
// reaches all of them.
func TestSafeRolloutStory(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	names := []string{"a", "b", "c", "d", "e"}
	testkit.RunInBackground(t, func(ctx context.Context) {
		first := ""
		crashes := func(pod *corev1.Pod) bool { // with the first version that Lockstep delivers
			shown := pod.Annotations[settings.Inputs]
			if first == "" {
				first = shown
			}
			return shown != "" && shown == first
		}
		if err := kubelet.Play(ctx, testkit.NewClient(t, w.Cluster.Kubeconfig()), w.Namespace, crashes); err != nil {
			t.Error(err)
		}
	})
	w.Create(t, testkit.ConfigMap("settings", "key", "1"))
	for _, name := range names {
		d := testkit.Deployment(name, "settings", "")
		d.Spec.Replicas, d.Spec.Template.Spec.SchedulerName = new(int32(1)), kubelet.Scheduler
		w.Create(t, d)
	}
	awaitAvailable(t, w, names)
	inprocess.StartReady(t, w, "--quiet", testkit.Quiet, "--settle", "100ms")
	for _, name := range names {
		w.AwaitRecord(t, name, "configmap/settings")
		w.Patch(t, &appsv1.Deployment{}, name, `{"spec":{"progressDeadlineSeconds":1}}`)
	}

	w.SetConfig(t, "settings", "key", "bad")
	w.AwaitEvent(t, "settings", "Warning VersionStopped")
	var have, kept []string
	for _, name := range names {
		if w.Shown(t, name) != "" {
			have = append(have, name)
			continue
		}
		kept = append(kept, name)
		w.AwaitEvent(t, name, "Warning VersionStopped", "configmap/settings")
	}
	if len(have) != 1 {
		t.Errorf("%q have the version that breaks them, want one", have)
	}
	said, _, _ := inprocess.Run(t, "status", "-n", w.Namespace, "--controller-namespace", w.Own, "--kubeconfig", w.Cluster.Kubeconfig())
	for _, name := range kept {
		if !strings.Contains(said, "deployment/"+name) {
			t.Errorf("lockstep status does not show deployment/%s:\n%s", name, said)
		}
	}

	for _, name := range names {
		w.Patch(t, &appsv1.Deployment{}, name, `{"spec":{"progressDeadlineSeconds":600}}`)
	}
	w.SetConfig(t, "settings", "key", "good")
	for _, name := range kept {
		w.AwaitRollout(t, name, "")
	}
	awaitAvailable(t, w, names)
}

// awaitAvailable waits until the newest template of every Deployment runs.
func awaitAvailable(t *testing.T, w *testkit.World, names []string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		for _, name := range names {
			d := w.Deployment(t, name)
			if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 || s.AvailableReplicas != 1 {
				return false, fmt.Sprintf("the rollout of %s isn't complete: %+v", name, s)
			}
		}
		return true, ""
	})
}
