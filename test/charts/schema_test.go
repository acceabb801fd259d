package charts_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// TestSchemaKnowsEveryValue: a value that the schema does not know is not checked,
// and one that only the schema knows has no effect. The templates refuse a name that neither knows, with
// the known ones.
func TestSchemaKnowsEveryValue(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for chart, open := range map[string][]string{"app": openParts(), "lockstep": {"extraEnv.*."}} {
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			var values, schema map[string]any
			read(t, filepath.Join(h.Chart(chart), "values.yaml"), yaml.Unmarshal, &values)
			read(t, filepath.Join(h.Chart(chart), "values.schema.json"), json.Unmarshal, &schema)
			for _, own := range []string{"global", "enabled", "tags"} {
				values[own] = nil // Helm's own: a parent chart sets them
			}
			compare(t, "", values, schema)
			known := map[string][]string{}
			closedParts(open, "", schema, known)
			if diff := cmp.Diff(known, knownNames(t, h.Chart(chart))); diff != "" {
				t.Errorf("known names of the templates (-schema +templates):\n%s", diff)
			}
		})
	}
}

// knownNames are those that the chart's templates accept, by the path of their map.
func knownNames(t *testing.T, chart string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "templates", "_checkvalues.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ".known\" -}}\n")
	table, _, found := strings.Cut(rest, "{{- end -}}")
	known := map[string][]string{}
	if err := yaml.Unmarshal([]byte(table), &known); err != nil || !found {
		t.Fatalf("the known names are %q, error %v", table, err)
	}
	return known
}

// closedParts are the names of each map of the schema, without the open parts.
func closedParts(openParts []string, path string, schema map[string]any, into map[string][]string) {
	if properties, ok := schema["properties"].(map[string]any); ok {
		if !slices.Contains(openParts, path+".") {
			into[path] = slices.Sorted(maps.Keys(properties))
		}
		for name, part := range properties {
			closedParts(openParts, strings.TrimPrefix(path+"."+name, "."), part.(map[string]any), into)
		}
	}
	for _, all := range []string{"items", "additionalProperties"} {
		if part, ok := schema[all].(map[string]any); ok {
			closedParts(openParts, path+".*", part, into)
		}
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
	return []string{".", "image.", "rollout.", "configmapAttacher.", "rbac.", "configmaps.*.", "ports.*."}
}

// compare walks down the parts whose properties the schema lists.
func compare(t *testing.T, path string, values, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
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
			compare(t, path+name+".", inner, part)
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
