package manifest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
)

// write writes files below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLineOf(t *testing.T) {
	t.Parallel()
	const text = `# a comment
---

apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  annotations:
    a: "1"
    b: |
      two
      lines
    c: "3"
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: first, labels: {a: "1"}}
- apiVersion: v1
  kind: Secret
  metadata:
    name: second
    labels:
      a: "1"
---
{"apiVersion": "v1", "kind": "ConfigMap",
 "metadata": {"name": "json",
  "labels": {"a": "1"}}}
`
	all, err := manifest.Read([]string{filepath.Join(write(t, map[string]string{"a.yaml": text}), "a.yaml")}, nil)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d objects, error %v", len(all), err)
	}
	for _, c := range []struct {
		reason string
		object int
		path   []string
		want   int
	}{
		{"a field", 0, []string{"metadata", "annotations", "a"}, 9},
		{"behind a text of several lines", 0, []string{"metadata", "annotations", "c"}, 13},
		{"what is not there stands at what is around it", 0, []string{"metadata", "annotations", "x"}, 8},
		{"nothing of it is there", 0, []string{"spec"}, 4},
		{"the object itself", 0, nil, 4},
		{"an item in the flow style", 1, []string{"metadata", "labels", "a"}, 20},
		{"an item", 2, []string{"metadata", "labels", "a"}, 26},
		{"JSON", 3, []string{"metadata", "labels", "a"}, 30},
	} {
		if got := all[c.object].LineOf(c.path...); got != c.want {
			t.Errorf("%s: line %d, want %d", c.reason, got, c.want)
		}
	}
}

// TestLinesOfAliases: what an alias or a merge brings in stands where its anchor is.
func TestLinesOfAliases(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: first
    labels: &labels
      team: shop
  spec: &spec
    config: &config
      name: app
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: aliased, labels: *labels}
  spec: *spec
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: merged
    labels:
      <<: [*labels]
      tier: web
  spec:
    config:
      <<: *config
`
	all, err := manifest.Read([]string{manifest.Stdin}, strings.NewReader(text))
	if err != nil || len(all) != 3 {
		t.Fatalf("%d objects, error %v", len(all), err)
	}
	isConfig := func(path []string, value string) bool {
		return value == "app" && slices.Equal(path, []string{"spec", "config", "name"})
	}
	for _, o := range all {
		if got := o.LineOf("metadata", "labels", "team"); got != 9 {
			t.Errorf("%s: the label is in line %d, want 9", o.GetName(), got)
		}
		if got := o.LineWhere(isConfig); got != 12 {
			t.Errorf("%s: the value is in line %d, want 12", o.GetName(), got)
		}
	}
	if got := all[2].LineOf("metadata", "labels", "tier"); got != 23 {
		t.Errorf("the label beside a merge is in line %d, want 23", got)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(write(t, map[string]string{"b.yaml": app, "a/c.yml": app, "values.yaml": "replicas: 1\n", "a/readme.md": "text"}), dir); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reader manifest.Reader
		want   manifest.Found
		fails  bool
	}{
		"Strict":    {manifest.Reader{}, manifest.Found{}, true},
		"Flat":      {manifest.Reader{SkipOthers: true}, manifest.Found{Files: 2, Others: 1}, false},
		"Recursive": {manifest.Reader{SkipOthers: true, Recursive: true}, manifest.Found{Files: 3, Others: 1}, false},
	} {
		got, err := c.reader.Read([]string{dir})
		if (err != nil) != c.fails {
			t.Errorf("%s: error %v", name, err)
		}
		if want := got.Files - got.Others; len(got.Objects) != want {
			t.Errorf("%s: %d objects, want %d", name, len(got.Objects), want)
		}
		got.Objects = nil
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadGoesOn: what is no manifest hides nothing of the others.
func TestReadGoesOn(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a.yaml": "a: [\n---\n" + app, "b.yaml": app, "c.yaml": "{{ .Values }}: {{\n"})
	got, err := manifest.Reader{GoOn: true}.Read([]string{filepath.Join(dir, "none.yaml"), dir})
	if err != nil || len(got.Objects) != 2 || len(got.Wrong) != 3 || got.Files != 3 {
		t.Errorf("%d objects of %d files, errors %v and %v", len(got.Objects), got.Files, got.Wrong, err)
	}
	if got, err := (manifest.Reader{}).Read([]string{dir}); err == nil || len(got.Objects) > 0 {
		t.Errorf("without going on, %d objects and error %v", len(got.Objects), err)
	}
}

// TestReadGenerated: "kubectl create" takes an object that has no name yet.
func TestReadGenerated(t *testing.T) {
	t.Parallel()
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}\n---\n{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {generateName: b-}}]}\n"
	name := filepath.Join(write(t, map[string]string{"a.yaml": text}), "a.yaml")
	got, err := manifest.Reader{Generated: true}.Read([]string{name})
	if err != nil || len(got.Objects) != 2 {
		t.Errorf("%d objects, error %v", len(got.Objects), err)
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	const text = `# a comment
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: b
    annotations:
      x: "1"
      y: "2"
      x: "3"
  data: {x: "1"}
  data: {x: "2"}
`
	all, err := manifest.Read([]string{filepath.Join(write(t, map[string]string{"a.yaml": text}), "a.yaml")}, nil)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d objects, error %v", len(all), err)
	}
	if got := all[0].Duplicates(); len(got) > 0 {
		t.Errorf("of the first: %v", got)
	}
	want := []manifest.Duplicate{{Key: "data", Line: 15, First: 14}, {Key: "x", Line: 13, First: 11}}
	if diff := cmp.Diff(want, all[1].Duplicates()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
