package docs_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestFencesAreValid: every YAML of a page can be read, and what is a whole object is
// accepted by a real API server that refuses unknown fields.
func TestFencesAreValid(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	whole := 0
	for _, p := range pages(t) {
		for _, f := range p.fences("yaml") {
			for _, o := range documents(t, f.String(), f.text) {
				if isObject(o) && !f.marked("fragment") {
					server.accepts(t, f.String(), o)
					whole++
				}
			}
		}
	}
	if whole < 5 {
		t.Errorf("only %d whole objects were found in the pages", whole)
	}
}

// TestExamplesAreValid does the same for the manifests of examples/.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	var files []string
	err := filepath.WalkDir(filepath.Join(root(t), "examples"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("examples are %q, error %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(root(t), file)
		for _, o := range documents(t, name, string(text)) {
			switch {
			case isObject(o):
				server.accepts(t, name, o)
			case !isValues(name):
				t.Errorf("%s has a document without apiVersion and kind", name)
			}
		}
	}
}

// isValues: examples/app has values of charts/app, which test/charts renders.
func isValues(name string) bool { return strings.HasPrefix(filepath.ToSlash(name), "examples/app/") }

func isObject(o *unstructured.Unstructured) bool { return o.GetAPIVersion() != "" && o.GetKind() != "" }

// documents reads the documents of a YAML text.
func documents(t *testing.T, place, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Errorf("%s: %v", place, err)
			return found
		}
		if fields, ok := value.(map[string]any); ok {
			found = append(found, &unstructured.Unstructured{Object: fields})
		}
	}
}

// server is a real API server that is asked and not changed.
type server struct {
	client    client.Client
	namespace string
}

func newServer(t *testing.T) *server {
	t.Helper()
	cluster := labtest.Shared(t, labtest.ArgoRollouts)
	return &server{client: testkit.NewClient(t, cluster.Kubeconfig()), namespace: labtest.Namespace(t, cluster)}
}

// elsewhere are kinds of programs that are not installed here: their fields are
// not checked.
func elsewhere() []string {
	return []string{
		"argoproj.io/v1alpha1 Application",
		"helm.toolkit.fluxcd.io/v2 HelmRelease",
		"kustomize.toolkit.fluxcd.io/v1 Kustomization",
		"kustomize.config.k8s.io/v1beta1 Kustomization",
		"monitoring.coreos.com/v1 PodMonitor",
		"monitoring.coreos.com/v1 PrometheusRule",
	}
}

// accepts gives an object to the server for a dry run. Its namespace is replaced by
// one that exists.
func (s *server) accepts(t *testing.T, place string, o *unstructured.Unstructured) {
	t.Helper()
	kind := o.GetAPIVersion() + " " + o.GetKind()
	if slices.Contains(elsewhere(), kind) {
		return
	}
	mapping, err := s.client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Errorf("%s: the API server does not know %s: %v", place, kind, err)
		return
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.SetNamespace(s.namespace)
	}
	err = s.client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil {
		t.Errorf("%s: %s %s is refused: %v", place, kind, o.GetName(), err)
	}
}
