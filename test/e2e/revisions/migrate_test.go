package revisions_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// before is a chart of base-app's kind: hashed names, the ConfigMaps in one list,
// and nothing that tells Helm to keep them.
const before = `
apiVersion: v1
kind: List
metadata: {name: configmap-list}
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: demo-cm-1234567890, namespace: {{ .Release.Namespace }}, labels: {app: demo}}
    data: {color: red}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: demo, namespace: {{ .Release.Namespace }}, labels: {app: demo}}
spec:
  replicas: 3
  selector: {matchLabels: {app: demo}}
  strategy:
    canary: {maxSurge: 0, maxUnavailable: 1, steps: [{setWeight: 1}, {pause: {}}]}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers:
        - name: demo
          image: nginx
          volumeMounts: [{name: configmaps-volume, mountPath: /etc/kubernetes/configmaps}]
      volumes:
        - name: configmaps-volume
          projected: {sources: [{configMap: {name: demo-cm-1234567890}}]}
`

// TestMigrationFromBaseApp: base-app told Helm nothing about its ConfigMaps, so the
// upgrade to charts/app deletes them under a canary that waits, unless they are
// annotated first as docs/migrate/base-app.md says.
func TestMigrationFromBaseApp(t *testing.T) {
	t.Parallel()
	const red = "demo-cm-1234567890"
	for name, annotated := range map[string]bool{"annotated first": true, "not annotated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Helm.Run(t, "install", "demo", chartOf(t, before), "-n", w.Namespace)
			w.AwaitPods(map[string]int{red: 3})
			if annotated {
				w.keepConfigMaps()
			}
			job := w.Deploy(walkthrough.Release("blue", ""))
			w.RunJob(job)
			w.AwaitPause()
			w.AwaitPods(map[string]int{red: 2, w.ConfigMapOf("blue"): 1})
			if _, kept := w.ConfigMaps()[red]; kept != annotated {
				t.Errorf("the ConfigMap of the old pods is there: %t, want %t", kept, annotated)
			}
		})
	}
}

// keepConfigMaps does what "kubectl annotate configmaps -l app=demo
// helm.sh/resource-policy=keep" does.
func (w *world) keepConfigMaps() {
	w.T.Helper()
	list := &corev1.ConfigMapList{}
	w.List(list)
	for i := range list.Items {
		keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`))
		if err := w.Client.Patch(w.T.Context(), &list.Items[i], keep); err != nil {
			w.T.Fatal(err)
		}
	}
}

// chartOf writes a chart with one template.
func chartOf(t *testing.T, template string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"Chart.yaml":             "{apiVersion: v2, name: base-app, version: 1.0.1}\n",
		"templates/objects.yaml": template,
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
