package kubernetesreloader_test

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestExampleOverTheOriginal: the example is applied over the objects that the
// original's manifest has made. A selector cannot be changed, and an object under
// another name would leave the old one behind.
func TestExampleOverTheOriginal(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorldOn(t, labtest.Shared(t, labtest.KWOK))
	before := apply(t, w, "testdata/original.yaml", "NAMESPACE")
	after := apply(t, w, "../../../examples/kubernetes-reloader.yaml", "shop")
	for name := range after {
		if !before[name] {
			t.Errorf("the example makes %s, which the original does not have", name)
		}
	}
	d := &appsv1.Deployment{}
	w.Get(t, "reloader", d)
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 1 || !strings.Contains(containers[0].Image, "lockstep") {
		t.Errorf("the Deployment has %d containers, the first with the image %s", len(containers), containers[0].Image)
	}
}

// apply applies a manifest to the test's namespace and returns the names of its
// objects.
func apply(t *testing.T, w *testkit.World, file, namespace string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]bool{}
	text := strings.ReplaceAll(string(raw), "namespace: "+namespace, "namespace: "+w.Namespace)
	for _, o := range helmtest.Objects(t, text) {
		if err := w.Client.Patch(t.Context(), o, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership); err != nil { //nolint:staticcheck // a manifest of any kind
			t.Fatalf("apply %s %s of %s: %v", o.GetKind(), o.GetName(), file, err)
		}
		applied[o.GetKind()+" "+o.GetName()] = true
	}
	return applied
}
