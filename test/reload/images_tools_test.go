package reload_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
)

// TestKubectlApplyAfterAnImage: "kubectl apply" puts the image of the manifest back, and
// Lockstep pins it again, to what the annotation asks for then.
func TestKubectlApplyAfterAnImage(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:1.0", "one")
	other := g.push(t, "app:1.1", "two")
	manifest := func(tag string) string { return deployment("web", g.wants("app", "app:"+tag), g.runs("app:"+tag)) }
	g.open(t)
	g.kubectlApply(t, "", manifest("1.0"))
	g.awaitImage(t, web, "app", first)
	g.kubectlApply(t, manifest("1.0"), manifest("1.0"))
	g.awaitRollouts(t, web, 3)
	g.awaitPolls(t, 3)
	g.checkRollouts(t, "the same manifest again puts the tag back, and Lockstep pins it again", 3, web)
	g.awaitImage(t, web, "app", first)
	g.kubectlApply(t, manifest("1.0"), manifest("1.1"))
	g.awaitImage(t, web, "app", other)
}

// kubectlApply does what "kubectl apply" does: a three-way strategic merge, by the
// library that kubectl uses, of the manifest before, the manifest and the object.
func (g *gallery) kubectlApply(t testing.TB, before, manifest string) {
	t.Helper()
	if before == "" {
		g.make(t, manifest)
		return
	}
	current, err := json.Marshal(g.read(t, web).Object)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(asJSON(t, before), asJSON(t, manifest), current, schema, true)
	if err != nil {
		t.Fatal(err)
	}
	o := blank(t, web)
	o.SetNamespace(g.Namespace)
	if err := g.Client.Patch(t.Context(), o, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
}

func asJSON(t testing.TB, manifest string) []byte {
	t.Helper()
	text, err := yaml.ToJSON([]byte(strings.TrimPrefix(strings.TrimSpace(manifest), "---")))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestServerSideApplyAfterAnImage: the API server reports a conflict, because Lockstep
// owns the image; a manifest without the image, or with force, goes through.
func TestServerSideApplyAfterAnImage(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	apply := func(pod string, options ...client.PatchOption) error {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(asJSON(t, deployment("web", g.wants("app", "app:latest"), pod))); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(g.Namespace)
		return g.Client.Patch(t.Context(), o, client.Apply, append(options, client.FieldOwner("kubectl"))...) //nolint:staticcheck // a manifest of any kind
	}
	if err := apply(g.runs("app:latest")); err != nil {
		t.Fatal(err)
	}
	g.open(t)
	g.awaitImage(t, web, "app", first)
	err := apply(g.runs("app:latest"))
	if err == nil || !strings.Contains(err.Error(), `conflict with "lockstep"`) || !strings.Contains(err.Error(), `containers[name="app"].image`) {
		t.Errorf("the API server answers %v, want a conflict about the image", err)
	}
	// The recipe: a manifest that leaves the image to Lockstep.
	if err := apply("imagePullSecrets: [{name: pull}], terminationGracePeriodSeconds: 7, containers: [{name: app}]"); err != nil {
		t.Errorf("a manifest without the image: %v", err)
	}
	g.checkImage(t, "the image stays Lockstep's", first)

	if err := apply(g.runs("app:latest"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	g.awaitRollouts(t, web, 4)
	g.awaitImage(t, web, "app", first)
}

// TestHelmUpgradeAfterAnImage: Helm 4 applies on the server, so that an upgrade after
// Lockstep has moved the image is refused; without the image in the chart it is not.
func TestHelmUpgradeAfterAnImage(t *testing.T) {
	t.Parallel()
	helm := labtest.Program(t, program.Helm)
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Chart.yaml", "{apiVersion: v2, name: shop, version: 1.0.0}\n")
	write("templates/deployment.yaml", deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")+", terminationGracePeriodSeconds: {{ .Values.grace }}"))
	upgrade := func(flags ...string) (string, int) {
		t.Helper()
		args := append([]string{"upgrade", "--install", "shop", dir, "--namespace", g.Namespace, "--kubeconfig", g.Cluster.Kubeconfig()}, flags...)
		_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: helm, Args: args, Env: []string{"HOME=" + dir}})
		return stderr, code
	}
	if stderr, code := upgrade("--set", "grace=1"); code != 0 {
		t.Fatalf("install: exit code %d\n%s", code, stderr)
	}
	g.open(t)
	g.awaitImage(t, web, "app", first)
	stderr, code := upgrade("--set", "grace=2")
	if code == 0 || !strings.Contains(stderr, "conflict") || !strings.Contains(stderr, "lockstep") {
		t.Errorf("an upgrade of a moved image: exit code %d\n%s", code, stderr)
	}
	if stderr, code := upgrade("--set", "grace=3", "--force-conflicts"); code != 0 {
		t.Errorf("an upgrade that takes the fields: exit code %d\n%s", code, stderr)
	}
	g.awaitImage(t, web, "app", first)
	grace, _, _ := unstructured.NestedInt64(g.read(t, web).Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
	if fmt.Sprint(grace) != "3" {
		t.Errorf("the upgrade left a grace period of %d", grace)
	}
}
