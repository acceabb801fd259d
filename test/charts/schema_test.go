package charts_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// TestSchemaKnowsEveryValue: a value that the schema does not know is not checked,
// and one that only the schema knows has no effect.
func TestSchemaKnowsEveryValue(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for chart, open := range map[string][]string{"app": openParts(), "lockstep": nil} {
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			var values, schema map[string]any
			read(t, filepath.Join(h.Chart(chart), "values.yaml"), yaml.Unmarshal, &values)
			read(t, filepath.Join(h.Chart(chart), "values.schema.json"), json.Unmarshal, &schema)
			for _, own := range []string{"global", "enabled", "tags"} {
				values[own] = nil // Helm's own: a parent chart sets them
			}
			compare(t, open, "", values, schema)
			checkNames(t, schema)
		})
	}
}

// checkNames: an unknown name at the top is refused with the known ones.
func checkNames(t *testing.T, schema map[string]any) {
	t.Helper()
	if schema["additionalProperties"] != false {
		return
	}
	var known []any
	for _, name := range slices.Sorted(maps.Keys(schema["properties"].(map[string]any))) {
		known = append(known, name)
	}
	if diff := cmp.Diff(map[string]any{"enum": known}, schema["propertyNames"]); diff != "" {
		t.Errorf("propertyNames (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, file string, decode func([]byte, any) error, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = decode(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openParts are those of base-app, which had no schema: its users have values of
// their own there, for templates in their files. At the top a template refuses them, unless they are allowed.
func openParts() []string {
	return []string{"", "image.", "rollout.", "configmapAttacher.", "rbac."}
}

// compare walks down the parts whose properties the schema lists.
func compare(t *testing.T, openParts []string, path string, values, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	if open := slices.Contains(openParts, path); open == (schema["additionalProperties"] == false) {
		t.Errorf("%q: additionalProperties is %v", path, schema["additionalProperties"])
	}
	for name := range properties {
		if _, known := values[name]; !known {
			t.Errorf("%s%s is in the schema and not in values.yaml", path, name)
		}
	}
	for name, value := range values {
		part, known := properties[name].(map[string]any)
		if !known {
			t.Errorf("%s%s is in values.yaml and not in the schema", path, name)
		}
		if inner, ok := value.(map[string]any); ok && part["properties"] != nil {
			compare(t, openParts, path+name+".", inner, part)
		}
	}
}

func TestHelmLints(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for name, values := range examples(t) {
		if out, stderr, code := h.Try(t, "lint", "--strict", h.Chart("app"), "-f", helmtest.ValuesFile(t, values)); code != 0 {
			t.Errorf("%s: %s%s", name, out, stderr)
		}
	}
	if out, stderr, code := h.Try(t, "lint", "--strict", h.Chart("lockstep"), "--set", "image.repository=registry.example/lockstep"); code != 0 {
		t.Errorf("lockstep: %s%s", out, stderr)
	}
}
