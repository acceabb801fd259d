package charts_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestShortValuesAreText: every scalar becomes the text that was meant.
func TestShortValuesAreText(t *testing.T) {
	t.Parallel()
	cm := only(t, "ConfigMap", `
appName: a
configmaps:
  c:
    kv_data:
      bool: true
      affirmative: "yes"
      number: 123
      large: 12345678
      million: 1000000
      fraction: 1.5
      quoted-fraction: "1.0"
      hex: "0x10"
      exponent: "1e3"
      empty: ""
      nothing:
      list: "[a]"
      comment: "x # y"
      mapping: "a: b"
      alias: "*a"
      lines: "a\nb"
`)
	want := map[string]any{
		"bool": "true", "affirmative": "yes", "number": "123", "large": "12345678", "million": "1000000", "fraction": "1.5",
		"quoted-fraction": "1.0", "hex": "0x10", "exponent": "1e3", "empty": "", "nothing": "", "list": "[a]",
		"comment": "x # y", "mapping": "a: b", "alias": "*a", "lines": "a\nb",
	}
	if diff := cmp.Diff(want, at(t, cm, "data")); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// texts are files that a careless chart would change.
func texts() map[string]string {
	return map[string]string{
		"ends with a newline":        "line 1\nline 2\n",
		"ends without":               "no newline",
		"newlines around":            "\n\nx\n\n\n",
		"indented":                   "  indented\n  more\n",
		"first line indented deeper": "  first\nsecond\n",
		"empty":                      "",
		"only a newline":             "\n",
		"spaces at the end":          "a  \n  \n",
		"tabs":                       "\ta\t\n",
		"carriage returns":           "a\r\nb\r\n",
		"looks like YAML":            "---\na: [1, *b]\n# c\n",
		"looks like JSON":            `{"a": "<b> & 'c'", "d": "\n"}`,
		"quotes and backslashes":     `"\n' \u0041`,
		"next line":                  "a\u0085b",
		"line separator":             "a\u2028b\u2029c",
		"delete and control":         "a\u007fb\u0080c\u009fd\u0001e",
		"byte order mark":            "\ufeffa",
		"no character":               "a\ufffeb\uffffc",
		"outside the basic plane":    "𝄞 😀",
	}
}

// TestFilesAreByteExact: what goes in comes out, in ConfigMaps and in Secrets.
func TestFilesAreByteExact(t *testing.T) {
	t.Parallel()
	files, want := map[string]any{}, map[string]string{}
	i := 0
	for _, text := range texts() {
		name := "f" + string(rune('a'+i))
		files[name], want[name] = text, text
		i++
	}
	values, err := json.Marshal(map[string]any{
		"appName": "a", "configmaps": map[string]any{"c": map[string]any{"raw_data": files}},
		"secrets": map[string]any{"s": map[string]any{"raw_data": files}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// JSON escapes what YAML would not take as it is.
	cm := only(t, "ConfigMap", yamlSafe(string(values)))
	got, _, _ := unstructured.NestedStringMap(cm.Object, "data")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
	secret := only(t, "Secret", yamlSafe(string(values)))
	encoded, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for name, text := range want {
		decoded, err := base64.StdEncoding.DecodeString(encoded[name])
		if err != nil || string(decoded) != text {
			t.Errorf("Secret: %q became %q, error %v", text, decoded, err)
		}
	}
}

// yamlSafe escapes the characters that JSON may have as they are and YAML not.
func yamlSafe(text string) string {
	return strings.NewReplacer("\u0085", `\u0085`, "\u007f", `\u007f`, "\u0080", `\u0080`, "\u009f", `\u009f`, "\ufffe", `\ufffe`, "\uffff", `\uffff`).Replace(text)
}

func TestTemplatesInFiles(t *testing.T) {
	t.Parallel()
	cm := only(t, "ConfigMap", `
appName: a
configmaps:
  c:
    raw_data: {host: "{{ .Values.appName }}.example.org"}
`)
	if got := at(t, cm, "data", "host"); got != "a.example.org" {
		t.Errorf("the template became %q", got)
	}
	cm = only(t, "ConfigMap", `
appName: a
configmaps:
  c:
    templated: false
    raw_data: {alert: "{{ $labels.pod }} is down"}
`)
	if got := at(t, cm, "data", "alert"); got != "{{ $labels.pod }} is down" {
		t.Errorf("the text became %q", got)
	}
}

func TestBinaryData(t *testing.T) {
	t.Parallel()
	const values = "appName: a\nconfigmaps:\n  c:\n    binaryData:\n      logo: |\n        iVBORw0K\n        Ggo=\n"
	if got := at(t, only(t, "ConfigMap", values), "binaryData", "logo"); got != "iVBORw0KGgo=" {
		t.Errorf("binary data became %q", got)
	}
}

// TestRevisionedObjectsAreMarked: immutable, labelled for the controller, and kept
// by Helm and Argo CD.
func TestRevisionedObjectsAreMarked(t *testing.T) {
	t.Parallel()
	const values = `{appName: a, configmaps: {c: {kv_data: {x: y}}}, secrets: {s: {type: example.org/x, kv_data: {x: y}}}}`
	for _, kind := range []string{"ConfigMap", "Secret"} {
		o := only(t, kind, values)
		if at(t, o, "immutable") != true {
			t.Errorf("%s is not immutable", kind)
		}
		want := map[string]string{"app": "a", "lockstep.dev/revisioned": "true"}
		if diff := cmp.Diff(want, o.GetLabels()); diff != "" {
			t.Errorf("%s labels (-want +got):\n%s", kind, diff)
		}
		want = map[string]string{
			"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "Prune=false",
			"argocd.argoproj.io/compare-options": "IgnoreExtraneous",
		}
		if diff := cmp.Diff(want, o.GetAnnotations()); diff != "" {
			t.Errorf("%s annotations (-want +got):\n%s", kind, diff)
		}
	}
	if got := at(t, only(t, "Secret", values), "type"); got != "example.org/x" {
		t.Errorf("the Secret's type is %v", got)
	}
}
