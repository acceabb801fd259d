package charts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

var update = flag.Bool("update", false, "write the golden files")

// attachImage is a value that every release with an attach Job needs.
const attachImage = "configmapAttacher: {repository: registry.example/lockstep}\n"

// render renders the chart with values and returns the text. The values may replace attachImage.
func render(t *testing.T, values string, args ...string) string {
	t.Helper()
	h := helmtest.New(t, "")
	file := helmtest.ValuesFile(t, values)
	return h.Run(t, append([]string{"template", "release", h.Chart("app"), "-n", "shop", "-f", helmtest.ValuesFile(t, attachImage), "-f", file}, args...)...)
}

// refused renders values that must be refused and returns what was said.
func refused(t *testing.T, values string, args ...string) string {
	t.Helper()
	h := helmtest.New(t, "")
	file := helmtest.ValuesFile(t, values)
	_, stderr, code := h.Try(t, append([]string{"template", "release", h.Chart("app"), "-n", "shop", "-f", helmtest.ValuesFile(t, attachImage), "-f", file}, args...)...)
	if code == 0 {
		t.Fatalf("these values are accepted:\n%s", values)
	}
	return stderr
}

// wantAdvice checks what is said about values, added to the smallest ones, that are refused.
func wantAdvice(t *testing.T, advice map[string]string) {
	t.Helper()
	for values, want := range advice {
		if said := refused(t, minimal+values+"\n"); !strings.Contains(said, want) {
			t.Errorf("%s: said %s, want %s", values, said, want)
		}
	}
}

func examples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(helmtest.New(t, "").Root(), "examples", "app", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	found := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(filepath.Base(file), ".yaml")] = string(text)
	}
	return found
}

// TestExamplesAreGolden compares every example with what was reviewed, and with a
// second rendering: the same values give the same bytes.
func TestExamplesAreGolden(t *testing.T) {
	t.Parallel()
	for name, values := range examples(t) {
		for _, version := range []string{"1.23.0", "1.36.0"} {
			t.Run(name+" on "+version, func(t *testing.T) {
				t.Parallel()
				got := render(t, values, "--kube-version", version)
				if again := render(t, values, "--kube-version", version); again != got {
					t.Errorf("rendering twice differs:\n%s", cmp.Diff(got, again))
				}
				golden(t, filepath.Join("testdata", name+"-"+strings.TrimSuffix(version, ".0")+".yaml"), got)
			})
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what is rendered; look at it and run the tests with -update (-want +got):\n%s", file, diff)
	}
}

// TestAPIServerAcceptsEveryObject creates every object of every example with
// strict validation, without storing it.
func TestAPIServerAcceptsEveryObject(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t, labtest.ArgoRollouts)
	namespace := labtest.Namespace(t, cluster)
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The API server lists a new kind a moment after it accepts it.
	labtest.Eventually(t, 3*time.Minute, func() (bool, string) {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
		return err == nil, fmt.Sprint(err)
	})
	server := helmtest.NewServer(c)
	for name, values := range examples(t) {
		t.Run(name, func(t *testing.T) {
			objects := helmtest.Objects(t, render(t, values))
			for _, o := range objects {
				o.SetNamespace(namespace)
			}
			server.Accepts(t, objects)
		})
	}
}

// objects renders values and returns the objects of one kind.
func objects(t *testing.T, kind, values string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	return helmtest.OfKind(helmtest.Objects(t, render(t, values, args...)), kind)
}

// only is the one object of a kind.
func only(t *testing.T, kind, values string, args ...string) *unstructured.Unstructured {
	t.Helper()
	found := objects(t, kind, values, args...)
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s, want one", len(found), kind)
	}
	return found[0]
}

// at reads a field that must be there.
func at(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if !found || err != nil {
		t.Fatalf("%s %s has no %s", o.GetKind(), o.GetName(), strings.Join(path, "."))
	}
	return value
}
