package docs_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestNewManifestsOfStakaterReloader: the manifests of the page are applied to a real
// API server beside the built controller, and a change of each source rolls out the
// workload that the page says.
func TestNewManifestsOfStakaterReloader(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	for _, o := range objectsOf(t, "docs/reference/stakater-reloader.md") {
		w.Create(t, o)
	}
	w.StartReady(t, "--quiet", testkit.Quiet)
	for workload, sources := range map[string][]string{
		"deployment/web":   {"configmap/web-settings"},
		"statefulset/cart": {"configmap/cart-settings", "secret/cart-db"},
		"daemonset/edge":   {"secret/shared-tls"},
	} {
		o := testkit.Blank(t, workload)
		for _, source := range sources {
			awaitOnRecord(t, w, o, source)
			before := shown(t, w, o)
			change(t, w, source)
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				now := shown(t, w, o)
				return now != before && strings.Contains(now, source+"~"), fmt.Sprintf("%s shows %q after a change of %s", workload, now, source)
			})
		}
	}
}

// awaitOnRecord waits until a change of the source would be one.
func awaitOnRecord(t *testing.T, w *testkit.World, o *unstructured.Unstructured, source string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := w.RecordOf(t, o.GroupVersionKind().GroupKind(), o.GetName())
		return strings.Contains(entry, source), fmt.Sprintf("the record of %s is %q", o.GetName(), entry)
	})
}

// shown is what the pod template of a workload shows of its inputs.
func shown(t *testing.T, w *testkit.World, o *unstructured.Unstructured) string {
	t.Helper()
	w.Get(t, o.GetName(), o)
	text, _, err := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", settings.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// change gives a source a key that it did not have.
func change(t *testing.T, w *testkit.World, source string) {
	t.Helper()
	kind, name, _ := strings.Cut(source, "/")
	if kind == "secret" {
		w.SetSecret(t, name, "changed", "c2Vjb25k")
		return
	}
	w.SetConfig(t, name, "changed", "second")
}

// TestNewManifestOfKeel: the container of the page's Deployment is pinned to the newest
// tag of the range, and to the next one when it is pushed.
func TestNewManifestOfKeel(t *testing.T) {
	t.Parallel()
	registry := testkit.ServeRegistry(t, registrylab.Options{})
	push := func(tag string) string {
		t.Helper()
		digest, err := registry.PushIndex(t.Context(), "web", tag, tag)
		if err != nil {
			t.Fatal(err)
		}
		return registry.Address + "/web:" + tag + "@" + digest
	}
	push("1.4.2")
	push("2.0.0")
	want := push("1.5.0")

	w := testkit.NewWorld(t)
	for _, o := range objectsOf(t, "docs/migrate/image-tools.md", "registry.example", registry.Address) {
		w.Create(t, o)
	}
	w.StartReady(t, "--images", "--cloud-identity=false", "--image-interval=1s", "--quiet", testkit.Quiet,
		"--registry-ca", registry.Address+"="+testkit.Authority(t, registry), "--docker-config", login(t, registry.Address), "--docker-config-namespaces", "*")
	awaitImage(t, w, want)
	awaitImage(t, w, push("1.10.0"))
}

// login is a Docker configuration with the reader's credentials.
func login(t *testing.T, address string) string {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	return file(t, "config.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, address, auth))
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func awaitImage(t *testing.T, w *testkit.World, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		image := w.Deployment(t, "web").Spec.Template.Spec.Containers[0].Image
		return image == want, fmt.Sprintf("the image is %s, want %s", image, want)
	})
}

// objectsOf are the whole objects of a page, with some texts replaced in pairs.
func objectsOf(t *testing.T, path string, replace ...string) []client.Object {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, f := range parse(path, source).fences("yaml") {
		for _, o := range documents(t, f.String(), strings.NewReplacer(replace...).Replace(f.text)) {
			if isObject(o) && !f.marked("fragment") {
				objects = append(objects, o)
			}
		}
	}
	if len(objects) == 0 {
		t.Fatalf("%s has no manifest", path)
	}
	return objects
}
