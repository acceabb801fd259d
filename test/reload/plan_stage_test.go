package reload_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

// planned is a line of what "lockstep plan" says, without what differs between runs.
type planned struct {
	Would, Reason, Because string
	Estimate               bool
}

// ask runs a command in the stage's namespace, as who has the kubeconfig.
func (s *stage) ask(t testing.TB, kubeconfig string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	flags := []string{"--kubeconfig", kubeconfig, "--namespace", s.Namespace}
	if args[0] == "plan" {
		flags = append(flags, "--controller-namespace", s.Own)
	}
	return inprocess.Run(t, append(args, flags...)...)
}

// planAs asks for a plan of the manifests, by workload.
func (s *stage) planAs(t testing.TB, kubeconfig, manifests string) (byWorkload map[string]planned, notes []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := s.ask(t, kubeconfig, "plan", "-f", file, "-o", "json")
	var answer struct {
		Partial   bool
		Workloads []struct {
			Workload string
			planned
		}
		Notes []string
	}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
		t.Fatalf("plan ended with %d: %s; read %s: %v", code, stderr, stdout, err)
	}
	if want := map[bool]int{true: 1}[answer.Partial]; code != want {
		t.Fatalf("plan ended with %d, want %d: %s", code, want, stderr)
	}
	byWorkload = map[string]planned{}
	for _, w := range answer.Workloads {
		byWorkload[w.Workload] = w.planned
	}
	return byWorkload, answer.Notes
}

// apply does what "kubectl apply" does with each object of the manifests, in order: the
// three-way patch by the library that kubectl uses, which the API server carries out.
func (s *stage) apply(t testing.TB, manifests string) {
	t.Helper()
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace(s.Namespace)
		s.applyOne(t, o)
	}
}

func (s *stage) applyOne(t testing.TB, o *unstructured.Unstructured) {
	t.Helper()
	encoded := func(o *unstructured.Unstructured) []byte {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(encoded(o))
	o.SetAnnotations(annotations)
	live := o.DeepCopy()
	err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) {
		s.Create(t, o)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch([]byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), encoded(o), encoded(live), schema, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Client.Patch(t.Context(), live, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
}
