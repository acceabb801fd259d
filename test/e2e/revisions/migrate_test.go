package revisions_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
	"github.com/lockstep-dev/lockstep/test/walkthrough"
)

// before is a chart of base-app's kind: hashed names, the ConfigMaps in one list, a
// ClusterRole that other releases use (here one for each test), and nothing that tells Helm to keep them.
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
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: configmap-attacher-job-{{ .Release.Namespace }}, labels: {app: demo}}
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
				w.keep()
			}
			job := w.Deploy(walkthrough.Release("blue", ""))
			w.RunJob(job)
			w.AwaitPause()
			w.AwaitPods(map[string]int{red: 2, w.ConfigMapOf("blue"): 1})
			if _, kept := w.ConfigMaps()[red]; kept != annotated {
				t.Errorf("the ConfigMap of the old pods is there: %t, want %t", kept, annotated)
			}
			if err := w.Client.Delete(t.Context(), w.sharedRole()); (err == nil) != annotated {
				t.Errorf("the role that other releases use is there: %t, want %t (%v)", err == nil, annotated, err)
			}
		})
	}
}

// sharedRole is the ClusterRole of the chart before.
func (w *world) sharedRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "configmap-attacher-job-" + w.Namespace}}
}

// keep does what "kubectl annotate configmaps -l app=demo helm.sh/resource-policy=keep"
// does, and the same with the ClusterRole.
func (w *world) keep() {
	w.T.Helper()
	list := &corev1.ConfigMapList{}
	w.List(list)
	objects := []client.Object{w.sharedRole()}
	for i := range list.Items {
		objects = append(objects, &list.Items[i])
	}
	for _, o := range objects {
		keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`))
		if err := w.Client.Patch(w.T.Context(), o, keep); err != nil {
			w.T.Fatal(err)
		}
	}
}

// TestSecondReleaseOfBaseApp: a release with rbac.enabled=false gets by with the permissions
// of the account that base-app's first release made.
func TestSecondReleaseOfBaseApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.Deploy(walkthrough.Release("red", "rbac: {enabled: false}\n"))
	red := w.ConfigMapOf("red")
	rs := w.AwaitReplicaSet(red)
	if job.Account != "configmap-attacher-job" {
		t.Errorf("the Job runs as %s", job.Account)
	}
	account := labtest.NewAccount(t, w.Cluster, w.Namespace)
	account.AllowEverywhere(t, originalRole(t)...)
	testkit.AwaitListing(t, account, true, &corev1.ConfigMapList{}, client.InNamespace(w.Namespace))
	_, stderr, code := labtest.RunCommand(t, labtest.Command{Path: w.Lockstep, Args: job.Args, Env: []string{"KUBECONFIG=" + account.Kubeconfig}})
	if code != 0 {
		t.Fatalf("lockstep %q: exit %d\n%s", job.Args, code, stderr)
	}
	w.AwaitOwners(map[string][]string{red: {rs.Name}})
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
