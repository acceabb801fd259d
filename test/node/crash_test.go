package node_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// crashStopsTheSpread: an application crashes with the new content of the ConfigMap that five
// Deployments share. One of them gets it; the pods of the others keep running. The next version
// reaches all.
func crashStopsTheSpread(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	crashStops(t, cluster, answers(8080), "--settle=1s")
}

// crashWithoutProbeStopsTheSpread: without a readiness probe, a pod is ready from the start of its
// process until the kubelet has noticed its end, and again with each restart. The settle time is
// longer than that, on a busy machine too.
func crashWithoutProbeStopsTheSpread(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	crashStops(t, cluster, nil, "--settle=30s", "--rollout-timeout=20s")
}

func crashStops(t *testing.T, cluster *labtest.Cluster, readiness *corev1.Probe, flags ...string) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	names := []string{"a", "b", "c", "d", "e"}
	w.Create(t, config("hello", "one"))
	for _, name := range names {
		d := application(map[string]string{settings.Reload: "auto", settings.Quiet: quiet.String()})
		d.Name = name
		d.Spec.Template.Spec.Containers[0].ReadinessProbe = readiness
		labels := map[string]string{"app": name}
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
		w.Create(t, d)
	}
	awaitComplete(t, w, names)
	w.StartReady(t, flags...)
	for _, name := range names {
		w.AwaitRecord(t, name, "configmap/app")
	}

	setDeadline(t, w, names, 5) // only pods that crash start meanwhile
	change(t, w, "crash", "one")
	w.AwaitEvent(t, "app", "Warning VersionStopped")
	crashed := 0
	for _, name := range names {
		if w.Shown(t, name) != "" {
			crashed++
			continue
		}
		w.AwaitEvent(t, name, "Warning VersionStopped", "configmap/app")
		if s := w.Deployment(t, name).Status; s.AvailableReplicas != 1 || s.UpdatedReplicas != 1 {
			t.Errorf("the pod of %s doesn't run any more: %+v", name, s)
		}
	}
	if crashed != 1 {
		t.Errorf("%d Deployments have the content that makes them crash, want 1", crashed)
	}

	setDeadline(t, w, names, 600)
	change(t, w, "bonjour", "one")
	for _, name := range names {
		w.AwaitRollout(t, name, "")
	}
	awaitComplete(t, w, names)
}

func answers(port int) *corev1.Probe {
	p := &corev1.Probe{PeriodSeconds: 1}
	p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt(port)}
	return p
}

func setDeadline(t *testing.T, w *testkit.World, names []string, seconds int) {
	t.Helper()
	for _, name := range names {
		w.Patch(t, &appsv1.Deployment{}, name, fmt.Sprintf(`{"spec":{"progressDeadlineSeconds":%d}}`, seconds))
	}
}

// awaitComplete waits until the pod of each Deployment's newest template is available.
func awaitComplete(t *testing.T, w *testkit.World, names []string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		for _, name := range names {
			d := w.Deployment(t, name)
			if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 || s.AvailableReplicas != 1 {
				return false, fmt.Sprintf("the rollout of %s isn't complete: %+v", name, s)
			}
		}
		return true, ""
	})
}
