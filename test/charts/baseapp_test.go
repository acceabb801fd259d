package charts_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// baseAppDefaults are base-app's own values, every one of them.
const baseAppDefaults = `
appName: test-service
kubeTargetVersionOverride: ""
image: {repository: nginx, tag: 1.14.1, imagePullPolicy: Always}
replicas: 1
configmapsMountPath: /etc/kubernetes/configmaps
configmaps:
  example-cm-1:
    kv_data: {key-1: value-13, key-2: value-2}
    raw_data: {somename: "line 1\nline 2\n"}
  example-cm-2:
    kv_data: {key-3: value-3, key-4: value-4}
    raw_data: {somename: "line 1\nline 2\n"}
rollout: {strategy: {}, preDefinedStrategy: manual-canary-1-pod}
configmapAttacher:
  repository: quay.io/liorfranko/configmap-attacher
  tag: 1.0.3
  resources:
    limits: {cpu: 0.1, memory: 100Mi}
    requests: {cpu: 0.1, memory: 100Mi}
rbac: {enabled: true}
`

// printedValues are those of the walk-through that base-app's author published, as far as it prints them or
// what was made of them.
const printedValues = `
appName: demo
replicas: 3
configmaps:
  cm:
    kv_data: {key-1: value-1}
    raw_data:
      configuration.json: |
        {
          "general": {
            "projectName": "demo service",
          }
        }
rollout:
  preDefinedStrategy: ""
  strategy:
    canary:
        maxSurge: 0
        maxUnavailable: 1
        steps:
        - setWeight: 1
        - pause: {}
`

// TestPrintedValues compares what becomes of them with the objects that the walk-through prints. Its second
// release in a cluster can't make the account of the Job again, and uses that of the first.
func TestPrintedValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]struct{ account, namespace string }{
		printedValues: {"demo-attach", "devops-apps-01"},
		printedValues + "rbac: {enabled: false}\n": {"configmap-attacher-job", "kube-system"},
	} {
		args := []string{"-n", "devops-apps-01", "--set", "revisions.naming=adler32"}
		cm := only(t, "ConfigMap", values, args...)
		data := map[string]any{"key-1": "value-1", "configuration.json": "{\n  \"general\": {\n    \"projectName\": \"demo service\",\n  }\n}\n"}
		if diff := cmp.Diff(data, at(t, cm, "data")); diff != "" || cm.GetName() != "demo-cm-2648648036" || cm.GetNamespace() != "devops-apps-01" || cm.GetLabels()["app"] != "demo" {
			t.Errorf("ConfigMap %s in %s with labels %v, data (-want +got):\n%s", cm.GetName(), cm.GetNamespace(), cm.GetLabels(), diff)
		}
		r := only(t, "Rollout", values, args...)
		sameJSON(t, at(t, r, "spec", "template", "spec", "volumes").([]any)[0],
			`{"name": "configmaps-volume", "projected": {"defaultMode": 420, "sources": [{"configMap": {"name": "demo-cm-2648648036"}}]}}`)
		sameJSON(t, container(t, r)["volumeMounts"].([]any)[0], `{"mountPath": "/etc/kubernetes/configmaps", "name": "configmaps-volume"}`)
		sameJSON(t, at(t, r, "spec", "strategy"), `{"canary": {"maxSurge": 0, "maxUnavailable": 1, "steps": [{"setWeight": 1}, {"pause": {}}]}}`)
		if r.GetName() != "demo" || r.GetLabels()["app"] != "demo" || at(t, r, "spec", "selector", "matchLabels", "app") != "demo" || at(t, r, "spec", "template", "metadata", "labels", "app") != "demo" {
			t.Errorf("the Rollout is %s with labels %v", r.GetName(), r.GetLabels())
		}
		if sum, _ := at(t, r, "spec", "template", "metadata", "annotations", "checksum/config").(string); len(sum) != 64 || container(t, r)["name"] != "demo" {
			t.Errorf("checksum/config is %q, the container %v", sum, container(t, r)["name"])
		}
		if at(t, r, "spec", "replicas") != 3.0 {
			t.Errorf("replicas are %v", at(t, r, "spec", "replicas"))
		}
		job := only(t, "Job", values, args...)
		if account := at(t, job, "spec", "template", "spec", "serviceAccountName"); account != want.account || job.GetNamespace() != want.namespace {
			t.Errorf("the Job runs in %s as %v, want %s as %s", job.GetNamespace(), account, want.namespace, want.account)
		}
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding"} {
			if made := len(objects(t, kind, values, args...)) == 1; made != (want.account == "demo-attach") {
				t.Errorf("for the account %s: a %s is made: %t", want.account, kind, made)
			}
		}
	}
}

// sameJSON compares a rendered value with its JSON.
func sameJSON(t *testing.T, got any, text string) {
	t.Helper()
	var want, same any
	written, err := json.Marshal(got)
	if err := errors.Join(err, json.Unmarshal(written, &same), json.Unmarshal([]byte(text), &want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMigrationPageValues: beside the values at the top of docs/migrate/base-app.md a file of base-app renders,
// with keys of its own and with the image that runs as root.
func TestMigrationPageValues(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(helmtest.New(t, "").Root(), "docs", "migrate", "base-app.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	fence, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the page has no values")
	}
	const own = "domain: example.org\nteam: {name: shop}\nrbac: {enabled: false}\nmount: {clashes: last}\nconfigmaps: {own: {raw_data: {host: '{{ .Values.team.name }}.{{ .Values.domain }}'}}}\n"
	args := []string{"-f", helmtest.ValuesFile(t, own), "-f", helmtest.ValuesFile(t, fence)}
	all := objects(t, "ConfigMap", baseAppDefaults, args...)
	if got := at(t, all[len(all)-1], "data", "host"); got != "shop.example.org" {
		t.Errorf("the file became %q", got)
	}
	r := only(t, "Rollout", baseAppDefaults, args...)
	_, ofPod, _ := unstructured.NestedMap(r.Object, "spec", "template", "spec", "securityContext")
	if c := container(t, r); ofPod || c["securityContext"] != nil || c["image"] != "nginx:1.14.1" {
		t.Errorf("the pod has a security context: %t; its container is %v", ofPod, c)
	}
}

// TestBaseAppFilesRender: base-app had no schema, so a file may hold anything, and
// templates in raw_data may read all of it.
func TestBaseAppFilesRender(t *testing.T) {
	t.Parallel()
	const app = "appName: web\n"
	cases := map[string]struct {
		values string
		want   map[string]string
	}{
		"a value of one's own in a template": {
			app + "custom: {domain: example.org}\nconfigmaps: {c: {raw_data: {host: '{{ .Values.appName }}.{{ .Values.custom.domain }}'}}}",
			map[string]string{"host": "web.example.org"},
		},
		"a value of one's own at the top": {
			app + "unknownValues: accept\ndomain: example.org\nconfigmaps: {c: {raw_data: {host: '{{ .Values.appName }}.{{ .Values.domain }}'}}}",
			map[string]string{"host": "web.example.org"},
		},
		"values of one's own beside the chart's": {
			app + "image: {registry: r.example.org}\nrollout: {team: a}\nrbac: {team: b}\nconfigmapAttacher: {team: c}\n" +
				"configmaps: {c: {description: d, raw_data: {x: '{{ .Values.image.registry }} {{ .Values.configmaps.c.description }}'}}}",
			map[string]string{"x": "r.example.org d"},
		},
		"the condition of a subchart": {
			app + "enabled: true\ntags: {web: true}\nconfigmaps: {c: {kv_data: {x: z}}}",
			map[string]string{"x": "z"},
		},
		"a key with dots":           {app + "configmaps: {app.example.org: {kv_data: {x: z}}}", map[string]string{"x": "z"}},
		"a key that ends in a dash": {app + "configmaps: {c-: {kv_data: {x: z}}}", map[string]string{"x": "z"}},
		"replicas as text":          {app + "replicas: '3'\nconfigmaps: {c: {kv_data: {x: z}}}", map[string]string{"x": "z"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cm := only(t, "ConfigMap", c.values)
			got, _, _ := unstructured.NestedStringMap(cm.Object, "data")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeysThatBecameValues: base-app accepted any key at the top. A key that has become a value of this chart
// is refused with advice, unless it is what the chart wants there. Each template refuses it, because Helm
// renders them in any order.
func TestKeysThatBecameValues(t *testing.T) {
	t.Parallel()
	wantAdvice(t, map[string]string{
		"env: production":         "env is a string, but this chart's env is a list.\nIf it is your own value, rename it, or move it below custom: {{ .Values.custom.env }}.",
		"env: {name: production}": "env is a map, but this chart's env is a list",
		"ports: 8080":             "ports is a number, but this chart's ports is a list",
		"unknownValues: accept\nservice: web.example.org": "service is a string, but this chart's service is a map",
		"sync: true":   "sync is a boolean, but this chart's sync is a map",
		"custom: [me]": "custom is a list, but this chart's custom is a map",
	})
	dir := filepath.Join(helmtest.New(t, "").Chart("app"), "templates")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	more, _ := filepath.Glob(filepath.Join(dir, "tests", "*"))
	if err != nil || len(files) == 0 || len(more) == 0 {
		t.Fatalf("templates %v and %v (%v)", files, more, err)
	}
	for _, file := range append(append(files, more...), filepath.Join(dir, "NOTES.txt")) {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), `{{- include "app.check" . `) {
			t.Errorf("%s doesn't begin with the check (%v)", file, err)
		}
	}
}

// TestNamesThatTheChartUses: base-app ignored keys of one's own, and the page lists the names that take
// effect now. The list is the schema without base-app's values.
func TestNamesThatTheChartUses(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	page, err := os.ReadFile(filepath.Join(h.Root(), "docs", "migrate", "base-app.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```text\n")
	listed, _, _ := strings.Cut(rest, "```\n")
	got := strings.Fields(listed)
	slices.Sort(got)
	if diff := cmp.Diff(newNames(t, filepath.Join(h.Chart("app"), "values.schema.json")), got); diff != "" {
		t.Errorf("names on the page (-want +got):\n%s", diff)
	}

	const taken = "args: [blue, green]\npodLabels: {team: shop}\nserviceAccountName: web\nresources: {team: shop}\n"
	r := only(t, "Rollout", minimal+"rollout: {preDefinedStrategy: manual-canary-1-pod}\n"+taken)
	sameJSON(t, container(t, r)["args"], `["blue", "green"]`)
	sameJSON(t, container(t, r)["resources"], `{"team": "shop"}`)
	if at(t, r, "spec", "template", "metadata", "labels", "team") != "shop" || at(t, r, "spec", "template", "spec", "serviceAccountName") != "web" {
		t.Errorf("the pod has the labels %v", at(t, r, "spec", "template", "metadata", "labels"))
	}
	wantAdvice(t, map[string]string{
		"service: {url: web.example.org}":       "service.url is not a value of this chart: use annotations, enabled, ports, type",
		`terminationGracePeriodSeconds: "30"`:   "'/terminationGracePeriodSeconds': got string, want integer",
		"tags: [a]":                             "'/tags': got array, want object",
		"image: {digest: abc}":                  `image.digest is "abc": set a digest: sha256:, followed by 64 hexadecimal digits, or leave it empty`,
		"configmapAttacher: {timeout: 30}":      "'/configmapAttacher/timeout': got number, want string",
		"configmapAttacher: {timeout: soon}":    `configmapAttacher.timeout is "soon": set a duration, such as 30s or 5m`,
		"configmapsMountPath: etc":              `configmapsMountPath is "etc": set an absolute path, such as /etc/config`,
		"replicas: many":                        `replicas is "many": set a whole number, such as 2`,
		"configmaps: {cm: {use: by the app}}":   "'/configmaps/cm/use'",
		`configmaps: {cm: {templated: "yes"}}`:  "'/configmaps/cm/templated'",
		"configmaps: {cm: {data: {a: b}}}":      "configmaps.cm.data isn't a known name: use kv_data or raw_data",
		"configmaps: {cm: {rawData: {a: b}}}":   "configmaps.cm.rawData isn't a known name: use raw_data",
		"configmaps: {cm: {binary: {a: Yg==}}}": "configmaps.cm.binary isn't a known name: use binaryData",
	})
	render(t, minimal+"image: {owner: shop}\nrollout: {owner: shop}\nconfigmapAttacher: {owner: shop}\nrbac: {owner: shop}\nconfigmaps: {cm: {owner: shop, kv_data: {a: b}}}\n")
}

// newNames are the names of the schema, at the top and inside the maps that base-app had, without base-app's own.
func newNames(t *testing.T, file string) []string {
	t.Helper()
	type properties struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		AdditionalProperties *struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"additionalProperties"`
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var schema properties
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	var old map[string]any
	if err := yaml.Unmarshal([]byte(baseAppDefaults), &old); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, raw := range schema.Properties {
		before, known := old[name]
		if !known {
			names = append(names, name)
			continue
		}
		inside, isMap := before.(map[string]any)
		var inner properties
		if err := json.Unmarshal(raw, &inner); !isMap || err != nil {
			continue
		}
		prefix := name + "."
		if inner.AdditionalProperties != nil {
			prefix += "KEY."
			inner.Properties, inside = inner.AdditionalProperties.Properties, inside["example-cm-1"].(map[string]any)
		}
		for key := range inner.Properties {
			if _, known := inside[key]; !known {
				names = append(names, prefix+key)
			}
		}
	}
	slices.Sort(names)
	return names
}

// TestBaseAppDefaults renders base-app's default values, with the names that they
// had. The two ConfigMaps bring the same file, which now has to be allowed.
func TestBaseAppDefaults(t *testing.T) {
	t.Parallel()
	args := []string{"--set", "revisions.naming=adler32,mount.clashes=last"}
	const first, second = "test-service-example-cm-1-4278394167", "test-service-example-cm-2-3943374092"
	var names []string
	for _, cm := range objects(t, "ConfigMap", baseAppDefaults, args...) {
		names = append(names, cm.GetName())
		if cm.GetNamespace() != "shop" || cm.GetLabels()["app"] != "test-service" {
			t.Errorf("%s is in %s with labels %v", cm.GetName(), cm.GetNamespace(), cm.GetLabels())
		}
	}
	if diff := cmp.Diff([]string{first, second}, names); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	r := only(t, "Rollout", baseAppDefaults, args...)
	source := func(name string) any { return map[string]any{"configMap": map[string]any{"name": name}} }
	if diff := cmp.Diff([]any{source(first), source(second)}, projected(t, r)); diff != "" {
		t.Errorf("mounted (-want +got):\n%s", diff)
	}
	if c := container(t, r); r.GetName() != "test-service" || c["name"] != "test-service" || c["image"] != "nginx:1.14.1" {
		t.Errorf("Rollout %s with the container %v", r.GetName(), c)
	}
	want := []any{"-rollout", "test-service", "-namespace", "shop", "-configmaps", first + "," + second}
	if diff := cmp.Diff(want, container(t, only(t, "Job", baseAppDefaults, args...))["args"]); diff != "" {
		t.Errorf("arguments of the Job (-want +got):\n%s", diff)
	}
	if said := refused(t, baseAppDefaults); !strings.Contains(said, "mount.clashes=last") {
		t.Errorf("the clash is refused without advice: %s", said)
	}
}

// TestOldNamesAreWarnedOf: with them the first upgrade rewrites what old pods read.
func TestOldNamesAreWarnedOf(t *testing.T) {
	t.Parallel()
	h := helmtest.New(t, "")
	for naming, want := range map[string]bool{"adler32": true, "sha256": false} {
		out := h.Run(t, "install", "web", h.Chart("app"), "--dry-run=client", "-f", helmtest.ValuesFile(t, attachImage+minimal), "--set", "revisions.naming="+naming)
		if got := strings.Contains(out, "WARNING: revisions.naming is adler32"); got != want {
			t.Errorf("%s: warned %t, want %t", naming, got, want)
		}
	}
}

// TestNotesOfTheMigration: Helm's notes name the values that an image which runs as root needs, and the account
// that this release doesn't make.
func TestNotesOfTheMigration(t *testing.T) {
	t.Parallel()
	const nonRoot, shared = "set podSecurityContext=null and securityContext=null", "configmap-attacher-job in namespace\nkube-system"
	h := helmtest.New(t, "")
	for more, want := range map[string][2]bool{
		"":                                      {true, false},
		"podSecurityContext: null":              {false, false},
		"podSecurityContext: {runAsUser: 1000}": {false, false},
		"rbac: {enabled: false}":                {true, true},
	} {
		out := h.Run(t, "install", "web", h.Chart("app"), "--dry-run=client", "-f", helmtest.ValuesFile(t, attachImage+minimal+more))
		if got := [2]bool{strings.Contains(out, nonRoot), strings.Contains(out, shared)}; got != want {
			t.Errorf("%q: names the security contexts and the account: %v, want %v", more, got, want)
		}
	}
}
