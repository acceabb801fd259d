package install

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestDrainOfPodsThatAreNotReady: pods that run and are not ready hold up no drain, although the
// disruption budget wants one that is. No node takes the pods: the test is their kubelet.
func TestDrainOfPodsThatAreNotReady(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorldOn(t, labtest.Shared(t))
	values := switches{reload: true}.values() + "nodeSelector: {lockstep.dev/no-node: has-this}\n"
	for _, o := range render(t, helmtest.New(t, ""), w.Own, w.Own, values) {
		w.Create(t, o)
	}
	pods := &corev1.PodList{}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		if err := w.Client.List(t.Context(), pods, client.InNamespace(w.Own)); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items) == 2, fmt.Sprintf("%d pods", len(pods.Items))
	})
	for _, pod := range pods.Items {
		const unready = `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}`
		if err := w.Client.Status().Patch(t.Context(), &pod, client.RawPatch("application/strategic-merge-patch+json", []byte(unready))); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range pods.Items {
		labtest.Eventually(t, testkit.Patience, func() (bool, string) { // the budget takes a moment to be counted
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
			err := w.Client.SubResource("eviction").Create(t.Context(), &pod, eviction)
			return err == nil, fmt.Sprintf("evict %s: %v", pod.Name, err)
		})
	}
}
