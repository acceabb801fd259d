package charts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		out := h.Run(t, "install", "web", h.Chart("app"), "--dry-run=client", "-f", helmtest.ValuesFile(t, minimal), "--set", "revisions.naming="+naming)
		if got := strings.Contains(out, "WARNING: revisions.naming is adler32"); got != want {
			t.Errorf("%s: warned %t, want %t", naming, got, want)
		}
	}
}
