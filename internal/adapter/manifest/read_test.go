package manifest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/manifest"
)

const app = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"

// places are the objects with where they begin: "ConfigMap/app 1".
func places(all []manifest.Object) []string {
	list := make([]string, len(all))
	for i, o := range all {
		list[i] = fmt.Sprintf("%s/%s %d", o.GetKind(), o.GetName(), o.Line)
	}
	return list
}

func TestRead(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   []string
		err    string
	}{
		"One":          {"a file with one object", app, []string{"ConfigMap/app 1"}, ""},
		"Several":      {"documents have the line of their first word", "# a comment\n---\n\n" + app + "---\n# nothing\n---\n" + strings.ReplaceAll(app, "app", "two"), []string{"ConfigMap/app 4", "ConfigMap/two 10"}, ""},
		"Commented":    {"a comment may follow the dashes", app + "--- # Source: two\n" + strings.ReplaceAll(app, "app", "two"), []string{"ConfigMap/app 1", "ConfigMap/two 5"}, ""},
		"Flow":         {"YAML in the flow style is no JSON", "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}\n", []string{"ConfigMap/app 1"}, ""},
		"JSON":         {"JSON objects need nothing between them", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}`, []string{"Secret/a 1", "Secret/b 2"}, ""},
		"List":         {"kubectl get -o yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}\n", []string{"ConfigMap/a 1", "Deployment/b 1"}, ""},
		"KindOfList":   {"the items of a typed list need not say what they are", "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n- metadata: {name: a}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n", []string{"Deployment/a 1", "ConfigMap/b 1"}, ""},
		"Empty":        {"a chart may render nothing", "---\n# nothing\n", nil, ""},
		"BlockScalar":  {"three dashes inside of a text end no document", app + "data:\n  a: |\n    ---\n    b\n", []string{"ConfigMap/app 1"}, ""},
		"NoYAML":       {"the line of the mistake", app + "---\napiVersion: v1\nkind: [\n", nil, "app.yaml:6: not a manifest: did not find expected node content"},
		"NoYAMLInside": {"in the middle of a document", app + "data:\n  {{- if .Values.a }}\n  a: b\n  {{- end }}\n", nil, "app.yaml:5: not a manifest: did not find expected node content"},
		"End":          {"the scanner looks for what is missing behind the end", app + "data:\n*m\n", nil, "app.yaml:5: not a manifest: could not find expected ':'"},
		"Tab":          {"what the scanner refuses", app + "data:\n\ta: b\n", nil, "app.yaml:5: not a manifest: found character that cannot start any token"},
		"NoAnchor":     {"an alias of nothing", app + "data:\n  a: b\n  c: *none\n  d: e\n", nil, "app.yaml:6: not a manifest: an alias doesn't have an anchor; quote a value that begins with *"},
		"NoAnchorEnd":  {"in the last line of the second document", app + "---\n" + app + "data: *none", nil, "app.yaml:8: not a manifest: an alias doesn't have an anchor; quote a value that begins with *"},
		"NoBase64":     {"binary data, after a key that is there twice", app + "binaryData: {a: b, a: c}\nbinaryData:\n  good: !!binary aGk=\n  bad: !!binary '***'\n  c: d\n", nil, "app.yaml:7: not a manifest: !!binary value contains invalid base64 data"},
		"NoMapKey":     {"a template of Helm that is YAML by chance", app + "data:\n  a: b\n  c: {{ .Values.c }}\n", nil, "app.yaml:6: not a manifest: a map is used as a key; quote {{ }}, or render the template first"},
		"NoFloat":      {"a value must not be quoted: it may be that of a Secret", app + "data:\n  a: b\n  c: !!float hunter2\n", nil, "app.yaml:6: not a manifest: a value does not match its tag (!!)"},
		"Itself":       {"an anchor that contains itself", app + "data:\n  a: b\n  c: &c\n    d: *c\n", nil, "app.yaml:7: not a manifest: anchor 'c' value contains itself"},
		"NoObject":     {"a text is YAML too", "\nhello\n", nil, "app.yaml:2: not a manifest: it isn't an object with apiVersion and kind"},
		"NoKind":       {"values of a chart", "replicas: 1\n", nil, "app.yaml:1: not a manifest: apiVersion is missing"},
		"NoName":       {"kubectl apply refuses it as well", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", nil, "app.yaml:2: not a manifest: the ConfigMap doesn't have a metadata.name"},
		"NameIsNone":   {"YAML takes it for a number", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 123}\n", nil, "app.yaml:1: not a manifest: metadata.name of the ConfigMap isn't a string: quote it"},
		"ItemIsNone":   {"the content of an item is not told", "apiVersion: v1\nkind: List\nitems:\n- {data: {password: hunter2}}\n", nil, "app.yaml:1: not a manifest: an item of the list isn't an object with kind and metadata.name"},
		"ItemNameless": {"an item needs a name too", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap}\n", nil, "app.yaml:1: not a manifest: an item of the list isn't an object with kind and metadata.name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "app.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := manifest.Read([]string{file}, nil)
			if got := strings.TrimPrefix(fmt.Sprint(err), filepath.Dir(file)+"/"); tc.err != "" && got != tc.err {
				t.Errorf("%s: the error is %q, want %q", tc.reason, got, tc.err)
			}
			if _, placed := errors.AsType[*manifest.Error](err); (err != nil) != (tc.err != "") || err != nil && !placed {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, places(all), cmp.Transformer("", func(s []string) string { return strings.Join(s, ", ") })); diff != "" {
				t.Errorf("%s: objects (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": app, "a.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`, "README.md": "no manifest", "sub": ""} {
		if text == "" {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := manifest.Read([]string{dir, "-"}, strings.NewReader(strings.ReplaceAll(app, "app", "in")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret/a 1", "ConfigMap/app 1", "ConfigMap/in 1"}, places(all)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "none.yaml: no such file or directory",
		filepath.Join(dir, "sub"):       "sub: no file in it ends in .yaml, .yml or .json",
	} {
		if _, err := manifest.Read([]string{name}, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("reading %s says %v, want %q", name, err, want)
		}
	}
	if _, err := manifest.Read([]string{"-"}, strings.NewReader("a: b")); err == nil || err.Error() != "standard input:1: not a manifest: apiVersion is missing" {
		t.Errorf("a bad standard input says %v", err)
	}
}

// FuzzRead: whatever is piped into the command, it ends with objects or with a place.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{app, "{}", "---\n---\n", `{"kind":1}`, "a: [", app + "---\n" + app, "\x00", "kind: List\napiVersion: v1\nitems: [1]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := manifest.Read([]string{"-"}, strings.NewReader(text))
		if _, placed := errors.AsType[*manifest.Error](err); err != nil && !placed {
			t.Errorf("%q: the error %v has no place", text, err)
		}
		for _, o := range all {
			if o.GetName() == "" || o.GetKind() == "" || o.Line < 1 {
				t.Errorf("%q: read an object without name, kind or line: %v", text, o)
			}
		}
	})
}
