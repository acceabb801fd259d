package node_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// loadGrafana gives the node the agent under the name of k8s-sidecar, and a
// program that reads dashboards as Grafana does.
func loadGrafana(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	load(t, cluster, image.Image{
		Name: "lab.local/k8s-sidecar:1", Files: map[string]string{"/k8s-sidecar": labtest.Binary(t, "./cmd/lockstep-sync")}, Entrypoint: []string{"/k8s-sidecar"},
	})
	load(t, cluster, image.Image{
		Name: "lab.local/grafana:1", Files: map[string]string{"/grafana": labtest.Binary(t, "./test/node/standin")}, Entrypoint: []string{"/grafana"},
	})
}

// grafanaKeepsItsDashboards: the pod of the Grafana chart with only the images
// changed. Both sidecars run, dashboards in folders are found by a walk that
// enters no links, and nothing is deleted that is still there.
func grafanaKeepsItsDashboards(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	provision(t, w)
	applyGrafana(t, w, func(*corev1.PodSpec) {})
	// The init container has brought the data source before Grafana's first start.
	awaitLog(t, w, "grafana", "datasources prometheus.yaml", "dashboards Team/nodes.json top.json")
	changeDashboards(t, w)
	wantNoPort(t, w)
}

// grafanaWithNativeSidecars: the same with the sidecars as native ones, which
// start before Grafana and make no request for the first set.
func grafanaWithNativeSidecars(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	provision(t, w)
	applyGrafana(t, w, func(pod *corev1.PodSpec) {
		sidecars := slices.Clone(pod.Containers[:2])
		for i := range sidecars {
			sidecars[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			sidecars[i].Env = append(sidecars[i].Env, corev1.EnvVar{Name: "REQ_SKIP_INIT", Value: "true"})
		}
		// One of them with a port of its own, and a probe that holds Grafana back.
		sidecars[1].Env = append(sidecars[1].Env, corev1.EnvVar{Name: "HEALTH_PORT", Value: "8081"})
		for i, port := range []int32{8080, 8081} {
			sidecars[i].StartupProbe = httpProbe("/healthz", port)
		}
		pod.InitContainers, pod.Containers = sidecars, pod.Containers[2:]
	})
	awaitLog(t, w, "grafana", "dashboards Team/nodes.json top.json", "datasources prometheus.yaml")
	if log := logOf(t, w, "grafana"); !strings.Contains(log, "\ndashboards Team/nodes.json top.json\n") || strings.Contains(log, "\ndashboards \n") {
		t.Errorf("Grafana started before its dashboards were there:\n%s", log)
	}
	changeDashboards(t, w)
}

// provision creates two dashboards, one of them in a folder, and a data source.
func provision(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t, dashboard(w, "top", ""), dashboard(w, "nodes", "./Team"), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "datasource", Labels: map[string]string{"grafana_datasource": w.Namespace}},
		StringData: map[string]string{"prometheus.yaml": "datasources: []"},
	})
}

func dashboard(w *testkit.World, name, folder string) *corev1.ConfigMap {
	d := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"grafana_dashboard": w.Namespace}},
		Data:       map[string]string{name + ".json": "{}"},
	}
	if folder != "" {
		d.Annotations = map[string]string{"grafana_folder": folder}
	}
	return d
}

// changeDashboards changes, moves, adds and removes dashboards. Grafana deletes
// what went, and nothing else.
func changeDashboards(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t, dashboard(w, "pods", "Team"))
	awaitLog(t, w, "grafana", "dashboards Team/nodes.json Team/pods.json top.json")
	w.SetConfig(t, "nodes", "nodes.json", `{"title": "nodes"}`)
	if err := w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "top"}}); err != nil {
		t.Fatal(err)
	}
	awaitLog(t, w, "grafana", "dashboards Team/nodes.json Team/pods.json", "deleted dashboards top.json")
	for line := range strings.Lines(logOf(t, w, "grafana")) {
		if strings.HasPrefix(line, "deleted ") && strings.TrimSpace(line) != "deleted dashboards top.json" {
			t.Errorf("Grafana has %s", line)
		}
	}
	for name, n := range restartsOf(pod(t, w)) {
		if n != 0 {
			t.Errorf("%s was restarted %d times", name, n)
		}
	}
}

// wantNoPort looks for the sidecar that came second and runs without a port.
func wantNoPort(t *testing.T, w *testkit.World) {
	t.Helper()
	logs := logOf(t, w, "grafana-sc-dashboard") + logOf(t, w, "grafana-sc-datasources")
	if n := strings.Count(logs, "not serving probes"); n != 1 {
		t.Errorf("%d sidecars say that they have no port, want one:\n%s", n, logs)
	}
}

// applyGrafana creates the objects of the chart, with images of the lab and a
// label of this test's own, because the sidecars look into every namespace.
func applyGrafana(t *testing.T, w *testkit.World, edit func(*corev1.PodSpec)) {
	t.Helper()
	raw, err := os.ReadFile("testdata/grafana.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "LABEL-OF-THIS-TEST", w.Namespace)
	for _, o := range helmtest.Objects(t, text) {
		switch o.GetKind() {
		case "ClusterRole", "ClusterRoleBinding":
			everywhere(t, w, o)
		case "Deployment":
			d := &appsv1.Deployment{}
			convert(t, o, d)
			useLabImages(d.Spec.Template.Spec.InitContainers)
			useLabImages(d.Spec.Template.Spec.Containers)
			edit(&d.Spec.Template.Spec)
			w.Create(t, d)
		default:
			w.Create(t, o)
		}
	}
}

// everywhere creates a cluster-wide object under a name of its own and removes it
// after the test.
func everywhere(t *testing.T, w *testkit.World, o *unstructured.Unstructured) {
	t.Helper()
	o.SetName(o.GetName() + "-" + w.Namespace)
	if subjects, found, _ := unstructured.NestedSlice(o.Object, "subjects"); found {
		subjects[0].(map[string]any)["namespace"] = w.Namespace
		o.Object["subjects"] = subjects
		o.Object["roleRef"].(map[string]any)["name"] = "grafana-clusterrole-" + w.Namespace
	}
	if err := w.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(t.Context()), o)) }) // the control plane ends anyway
}

func httpProbe(path string, port int32) *corev1.Probe {
	p := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 60}
	p.HTTPGet = &corev1.HTTPGetAction{Path: path}
	p.HTTPGet.Port.IntVal = port
	return p
}
