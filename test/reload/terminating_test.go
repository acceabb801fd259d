package reload_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestNamespaceThatDoesNotEnd: finalizers keep a namespace, a workload with a pending change and its
// ConfigMap. Lockstep leaves them alone, whatever changes there, and serves other namespaces. The
// workload doesn't count as pending.
func TestNamespaceThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	other := newStage(t, simple())
	stuck := other.beside(t, simple())
	const keep, release = `{metadata: {finalizers: [example.com/keep]}}`, `{metadata: {finalizers: null}}`
	kept := []string{web, "configmap/app"}
	for _, ref := range kept {
		stuck.change(t, ref, keep)
	}
	stuck.annotate(t, web, settings.Quiet, "1h")
	address := freeAddress(t)
	// A process of its own counts only its own requests.
	other.runProcess(t, "--namespaces", stuck.Namespace+","+other.Namespace, "--metrics-addr", address)
	other.awaitKnown(t, deploy, "web", "configmap/app")
	stuck.awaitKnown(t, deploy, "web", "configmap/app")
	stuck.change(t, "configmap/app", "{data: {key: two}}")
	pending := func(want float64) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			got := sum(t, scrape(t, address), "lockstep_pending_workloads{")
			return got == want, fmt.Sprintf("%v workloads are pending, want %v", got, want)
		})
	}
	pending(1)

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stuck.Namespace}}
	if err := other.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, ref := range kept { // as the namespace's controller does, sooner or later
		if err := client.IgnoreNotFound(other.Client.Delete(t.Context(), stuck.read(t, ref))); err != nil {
			t.Fatal(err)
		}
	}
	pending(0)
	stuck.annotate(t, web, settings.Quiet, "0s")
	for turn := range 3 {
		stuck.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		other.change(t, "configmap/app", fmt.Sprintf("{data: {key: turn-%d}}", turn))
		other.awaitRollouts(t, web, turn+1)
		other.pass(t)
	}
	if got := stuck.rollouts(t, web); got != 0 {
		t.Errorf("the workload that is being deleted was rolled out %d times", got)
	}
	pending(0)
	// Nothing can be created in the namespace.
	if got := sum(t, scrape(t, address), `rest_client_requests_total{code="403"`); got > 1 {
		t.Errorf("%v requests were refused", got)
	}

	for _, ref := range kept {
		stuck.change(t, ref, release)
		o := blank(t, ref)
		if err := other.Client.Get(t.Context(), client.ObjectKey{Namespace: stuck.Namespace, Name: o.GetName()}, o); !apierrors.IsNotFound(err) {
			t.Errorf("%s doesn't end: error %v", ref, err)
		}
	}
	other.change(t, "configmap/app", "{data: {key: last}}")
	other.awaitRollouts(t, web, 4)
}

// sum adds up the series that begin with a text.
func sum(t testing.TB, metrics, beginning string) float64 {
	t.Helper()
	total := 0.0
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, beginning) {
			series, _, _ := strings.Cut(line, "} ")
			total += value(t, line, series+"}")
		}
	}
	return total
}
