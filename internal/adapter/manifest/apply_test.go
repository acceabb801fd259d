package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestApplied(t *testing.T) {
	t.Parallel()
	const head = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, "
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: db}, "
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: "
	const custom = "{apiVersion: example.com/v1, kind: Worker, metadata: {name: w}, spec: "
	cases := map[string]struct {
		reason             string
		live, before, file string
		want               string
	}{
		"New":         {"an object that does not exist is what the file says", "", "", head + "data: {a: '1'}}", head + "data: {a: '1'}}"},
		"Changed":     {"the file wins, and keys of others stay", head + "data: {a: '1', b: '2'}}", "", head + "data: {a: '3'}}", head + "data: {a: '3', b: '2'}}"},
		"Removed":     {"what an earlier apply had and the file has not goes", head + "data: {a: '1', b: '2'}}", head + "data: {a: '1', b: '2'}}", head + "data: {a: '1'}}", head + "data: {a: '1'}}"},
		"Texts":       {"the API server moves the texts of a Secret", secret + "data: {a: MQ==, b: MQ==}}", "", secret + "stringData: {a: '2'}}", secret + "data: {a: Mg==, b: MQ==}}"},
		"NewTexts":    {"also those of a new one", "", "", secret + "stringData: {a: '2'}}", secret + "data: {a: Mg==}}"},
		"MergeKeys":   {"containers are merged by name, and keep what others wrote", deployment + "{template: {spec: {containers: [{name: a, image: x, terminationMessagePath: /dev}, {name: b, image: y}]}}}}", "", deployment + "{template: {spec: {containers: [{name: a, image: z}]}}}}", deployment + "{template: {spec: {containers: [{name: a, image: z, terminationMessagePath: /dev}, {name: b, image: y}]}}}}"},
		"OtherKinds":  {"other kinds have no merge keys: lists are replaced", custom + "{a: 1, list: [1, 2]}}", "", custom + "{list: [3]}}", custom + "{a: 1, list: [3]}}"},
		"OtherFields": {"and fields that the file dropped go", custom + "{a: 1, b: 2}}", custom + "{a: 1, b: 2}}", custom + "{a: 1}}", custom + "{a: 1}}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var live *unstructured.Unstructured
			if tc.live != "" {
				live = object(t, tc.live)
			}
			if tc.before != "" {
				text, err := object(t, tc.before).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
			}
			got, err := manifest.Applied(live, object(t, tc.file))
			if err != nil {
				t.Fatal(err)
			}
			got.SetAnnotations(nil)
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAppliedKeepsAnnotations: kubectl notes of a file without annotations that it had none,
// and removes nobody's.
func TestAppliedKeepsAnnotations(t *testing.T) {
	t.Parallel()
	const noted = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app","annotations":{}},"data":{"a":"1"}}`
	live := object(t, noted)
	live.SetAnnotations(map[string]string{"lockstep.dev/hold": "freeze", corev1.LastAppliedConfigAnnotation: noted})
	got, err := manifest.Applied(live, object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: '2'}}"))
	if err != nil {
		t.Fatal(err)
	}
	if held := got.GetAnnotations()["lockstep.dev/hold"]; held != "freeze" {
		t.Errorf("the hold is %q after the apply", held)
	}
}
