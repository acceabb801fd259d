package patch_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/patch"
)

var update = flag.Bool("update", false, "write the golden documents of testdata anew")

// shown is an annotation as it is written.
func shown(value string) patch.Change {
	return patch.SetAnnotation{Key: "lockstep.dev/inputs", Value: value}
}

const versions = "configmap/app~3fa9c1d2e4,secret/db~77ab01c9de"

// TestAnnotationsAlone: annotations are a merge patch, whatever metadata there is.
func TestAnnotationsAlone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		template string
		changes  []patch.Change
	}{
		"deployment":  {"the common place of a template", "spec.template", []patch.Change{shown(versions)}},
		"cronjob":     {"a template inside a template", "spec.jobTemplate.spec.template", []patch.Change{shown(versions)}},
		"custom-deep": {"any path that a custom kind has", "spec.cluster.nodes.pod", []patch.Change{shown(versions)}},
		"custom-top":  {"also one at the top", "template", []patch.Change{shown(versions)}},
		"hostile":     {"text is data, whatever it looks like", "spec.template", []patch.Change{shown("\"},{\"spec\":null}\n\x00<&")}},
		"removed":     {"what is taken out is null", "spec.template", []patch.Change{shown(versions), patch.RemoveAnnotation{Key: "old"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, has := range []patch.Metadata{patch.HasAnnotations, patch.NoAnnotations, patch.NoMetadata} {
				target := patch.Target{UID: "4711", ResourceVersion: "42", Template: tc.template, Metadata: has}
				got, err := patch.Template(target, tc.changes)
				if err != nil || got.Type != types.MergePatchType {
					t.Fatalf("%s: a %s, error %v", tc.reason, got.Type, err)
				}
				golden(t, name+".json", got.Body)
			}
		})
	}
}

// TestPositions: what speaks of positions is one JSON patch with all the rest.
func TestPositions(t *testing.T) {
	t.Parallel()
	inputs := func(container, index int, first bool) patch.Change {
		return patch.SetVariable{Name: "LOCKSTEP_INPUTS", Value: "configmap/app~3fa9c1d2e4", Container: container, Index: index, First: first}
	}
	image := patch.SetImage{Container: 1, Image: "web:1@sha256:77ab01c9de"}
	everything := []patch.Change{
		inputs(0, -1, true), image,
		patch.SetImage{Init: true, Image: "init:2"},
		shown(versions),
		patch.SetAnnotation{Key: "a/b~c", Value: ""},
		patch.RemoveAnnotation{Key: "old"},
		inputs(2, 5, false),
	}
	cases := map[string]struct {
		reason  string
		has     patch.Metadata
		changes []patch.Change
	}{
		"env-first":       {"the container has no variables: the list comes first", patch.HasAnnotations, []patch.Change{inputs(0, -1, true)}},
		"env-more":        {"a new variable goes to the front", patch.HasAnnotations, []patch.Change{inputs(0, -1, false)}},
		"env-replace":     {"where it is, also in another container", patch.HasAnnotations, []patch.Change{inputs(2, 5, false)}},
		"env-both":        {"what moves others comes after what names positions", patch.HasAnnotations, []patch.Change{inputs(0, -1, false), inputs(1, 3, false)}},
		"env-stale":       {"the annotation of the other form is taken out", patch.HasAnnotations, []patch.Change{inputs(0, 0, false), patch.RemoveAnnotation{Key: "lockstep.dev/inputs"}}},
		"image":           {"an image and nothing else", patch.HasAnnotations, []patch.Change{image}},
		"all":             {"one document for everything", patch.HasAnnotations, everything},
		"all-unannotated": {"the template has labels only: the map of annotations is new", patch.NoAnnotations, everything},
		"all-bare":        {"the template has no metadata: that is new too", patch.NoMetadata, everything},
		"bare-removal":    {"what is not there need not be taken out", patch.NoMetadata, []patch.Change{image, patch.RemoveAnnotation{Key: "old"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := patch.Target{UID: "4711", ResourceVersion: "42", Template: "spec.template", Metadata: tc.has}
			got, err := patch.Template(target, tc.changes)
			if err != nil || got.Type != types.JSONPatchType {
				t.Fatalf("%s: a %s, error %v", tc.reason, got.Type, err)
			}
			golden(t, name+".json", got.Body)
		})
	}
}

func TestNoChangeIsNoPatch(t *testing.T) {
	t.Parallel()
	if got, err := patch.Template(patch.Target{UID: "4711", ResourceVersion: "42", Template: "spec.template"}, nil); err == nil {
		t.Errorf("a patch without a change: %s", got.Body)
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
