package patch_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/core/patch"
)

var update = flag.Bool("update", false, "write the golden documents of testdata anew")

func TestTemplateAnnotations(t *testing.T) {
	t.Parallel()
	shown := map[string]string{"lockstep.dev/inputs": "configmap/app~3fa9c1d2e4,secret/db~77ab01c9de"}
	cases := map[string]struct {
		reason      string
		template    string
		annotations map[string]string
	}{
		"deployment":  {"the common place of a template", "spec.template", shown},
		"cronjob":     {"a template inside a template", "spec.jobTemplate.spec.template", shown},
		"custom-deep": {"any path that a custom kind has", "spec.cluster.nodes.pod", shown},
		"custom-top":  {"also one at the top", "template", shown},
		"hostile":     {"text is data, whatever it looks like", "spec.template", map[string]string{"lockstep.dev/inputs": "\"},{\"spec\":null}\n\x00<&"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := patch.Target{UID: "4711", ResourceVersion: "42", Template: tc.template}
			got, err := patch.TemplateAnnotations(target, tc.annotations)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			golden(t, name+".json", got)
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	inputs := func(container, index int, first bool) patch.Variable {
		return patch.Variable{Name: "LOCKSTEP_INPUTS", Value: "configmap/app~3fa9c1d2e4", Container: container, Index: index, First: first}
	}
	cases := map[string]struct {
		reason    string
		variables []patch.Variable
		stale     []string
	}{
		"env-first":   {"the container has no variables: the list comes first", []patch.Variable{inputs(0, -1, true)}, nil},
		"env-more":    {"a new variable goes to the front", []patch.Variable{inputs(0, -1, false)}, nil},
		"env-replace": {"where it is, also in another container", []patch.Variable{inputs(2, 5, false)}, nil},
		"env-both":    {"what moves others comes after what names positions", []patch.Variable{inputs(0, -1, false), inputs(1, 3, false)}, nil},
		"env-stale":   {"the annotation of the other form is taken out", []patch.Variable{inputs(0, 0, false)}, []string{"lockstep.dev/inputs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := patch.Target{UID: "4711", ResourceVersion: "42", Template: "spec.template"}
			got, err := patch.Environment(target, tc.variables, tc.stale...)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			golden(t, name+".json", got)
		})
	}
}

// golden compares a JSON document with the one in testdata, indented for people.
func golden(t *testing.T, name string, document []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, document, "", "  "); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, document)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with: go test ./internal/core/patch -update)", err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got); if this is meant: go test ./internal/core/patch -update\n%s", path, diff)
	}
}
