package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/doctor"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestDoctor: all is well; then one defect after the other is made, and found.
func TestDoctor(t *testing.T) {
	t.Parallel()
	i := install(t)
	healthy := i.examine(t, "-n", i.Namespace)
	if healthy.code != 0 || len(healthy.checks) != len(doctor.Explanations()) {
		t.Fatalf("exit code %d:\n%s%s", healthy.code, healthy.stdout, healthy.stderr)
	}
	for name := range healthy.checks {
		if name == "leader" {
			healthy.expect(t, name, "warning", "isn't a pod of deployment/lockstep") // it is a process of the test
			continue
		}
		if name == "probes" {
			healthy.expect(t, name, "warning", "1 of 1 followed workload without a readiness probe", "deployment/web in namespace "+i.Namespace)
			continue
		}
		healthy.expect(t, name, "ok")
	}
	healthy.expect(t, "caches", "ok", "ready pods: 1 of 1")
	if strings.Contains(healthy.checks["caches"].Found, "didn't report details") {
		t.Errorf("the pod was not asked: %s", healthy.checks["caches"].text())
	}

	i.Create(t, testkit.Deployment("lost", "nowhere", ""))
	i.Annotate(t, testkit.Web, settings.Quiet, "soon")
	i.Annotate(t, testkit.Web, "reloader.stakater.com/auto", "true")
	i.Annotate(t, testkit.Web, settings.RolledOutBy, "elsewhere")
	i.Annotate(t, "lost", settings.ImagePrefix+"app", "127.0.0.1:1/app:1.*")
	sick := i.examine(t)
	if sick.code != 1 || !strings.Contains(sick.stderr, "Error: 1 problem\n") {
		t.Errorf("exit code %d: %s", sick.code, sick.stderr)
	}
	sick.expect(t, "settings", "problem", "deployment/web in namespace "+i.Namespace, `"soon" isn't valid`, "InvalidValue")
	sick.expect(t, "references", "warning", "deployment/lost in namespace "+i.Namespace+" needs configmap/nowhere, which does not exist")
	sick.expect(t, "reloaders", "warning", "deployment/web in namespace "+i.Namespace+" also has Stakater Reloader annotations", "rolled out by the installation in namespace elsewhere")
	sick.expect(t, "registries", "warning", "127.0.0.1:1", "does not follow images")
	sick.expect(t, "leader", "warning", "isn't a pod of deployment/lockstep") // it is a process of the test

	i.own().Make(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: reloader}
spec:
  selector: {matchLabels: {app: reloader}}
  template:
    metadata: {labels: {app: reloader}}
    spec: {containers: [{name: reloader, image: 'ghcr.io/stakater/reloader:v1.4.0'}]}
`)
	i.examine(t).expect(t, "reloaders", "problem", "also has Stakater Reloader annotations, and Stakater Reloader is running", "Stakater Reloader runs: deployment/reloader in namespace "+i.Own)

	for _, defect := range []struct {
		name string
		find func(*testing.T, *installation)
	}{{"Metadata", metadata}, {"Leftovers", leftovers}, {"AsRoot", asRoot}, {"Permissions", permissions}, {"Arguments", arguments}} {
		t.Run(defect.name, func(t *testing.T) { defect.find(t, i) })
	}
}

// permissions: a permission that is taken away is named, and what it is for.
func permissions(t *testing.T, i *installation) {
	t.Helper()
	i.account.Allow(t, append(testkit.OwnRules(), leases())...)
	i.AwaitRecordPermission(t, i.account, false)
	a := i.examine(t)
	a.expect(t, "permissions", "problem", "2 of ", "create configmaps in "+i.Own+": needed for the record of delivered versions", "patch configmaps/lockstep-state-00 in "+i.Own, i.account.Name)
	if a.code != 1 {
		t.Errorf("exit code %d", a.code)
	}
}

// TestDown: without a controller the Lease runs out.
func TestDown(t *testing.T) {
	t.Parallel()
	i := install(t)
	if code := i.controller.Stop(t); code != 0 {
		t.Fatalf("the controller ended with %d", code)
	}
	a := i.examine(t)
	a.expect(t, "leader", "problem", "Lease")
	a.expect(t, "clock", "ok")
}

// arguments: a Deployment whose controller would not start, for an unknown flag, and for flags
// that are right each by itself, and not together.
func arguments(t *testing.T, i *installation) {
	t.Helper()
	i.own().Patch(t, &appsv1.Deployment{}, "lockstep", `{"spec":{"template":{"spec":{"containers":[{"name":"lockstep","image":"lockstep","args":["controller","--quite=5s"]}]}}}}`)
	a := i.examine(t)
	a.expect(t, "controller", "problem", "unknown flag: --quite; did you mean --quiet?")
	a.expect(t, "permissions", "unknown")

	i.args(t, "--quiet=1h")
	i.examine(t).expect(t, "controller", "problem", "would not start", "maximum delay")
}

// TestNoPermissions: what could not be checked is told, with the permission that is missing.
func TestNoPermissions(t *testing.T) {
	t.Parallel()
	i := install(t)
	stranger := labtest.NewAccount(t, i.Cluster, i.Namespace)
	a := i.examineAs(t, stranger.Kubeconfig)
	if a.code != 1 || !strings.Contains(a.stderr, "checks could not be run") || strings.Contains(a.stderr, "goroutine") {
		t.Errorf("exit code %d: %s", a.code, a.stderr)
	}
	for name, right := range map[string]string{
		"controller": `cannot list resource "deployments"`, "leader": `cannot get resource "leases"`, "record": `cannot list resource "configmaps"`,
		"settings": "cannot list resource", "references": "cannot list resource", "pods": `cannot list resource "pods"`, "probes": "cannot list resource", "reloaders": "cannot list resource", "registries": "cannot list resource",
		"permissions": "not known", "caches": "not known",
	} {
		a.expect(t, name, "unknown", right)
	}
	a.expect(t, "clock", "ok")

	// With a namespace of one's own, that one is examined.
	stranger.Allow(t, labtest.Rule{Groups: []string{"apps", "batch", "argoproj.io", ""}, Resources: []string{"*"}, Verbs: []string{"list"}})
	testkit.AwaitListing(t, stranger, true, &corev1.ConfigMapList{}, client.InNamespace(i.Namespace))
	i.examineAs(t, stranger.Kubeconfig, "-n", i.Namespace).expect(t, "references", "unknown", "2 references of followed workloads, all to existing objects", `cannot list resource "namespaces"`)
}

// TestUnreachable: an API server that is not there is one line.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	i := &installation{World: testkit.NewWorldOn(t, labtest.Shared(t))}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const nowhere = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	a := i.examineAs(t, kubeconfig)
	if a.code != 1 || a.stdout != "" || strings.Count(a.stderr, "\n") != 1 || !strings.Contains(a.stderr, "reach the API server") {
		t.Errorf("exit code %d: %s%s", a.code, a.stdout, a.stderr)
	}
}

// TestNothingInstalled: an empty namespace has no installation.
func TestNothingInstalled(t *testing.T) {
	t.Parallel()
	i := &installation{World: testkit.NewWorldOn(t, labtest.Shared(t))}
	i.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
	a := i.examine(t, "-n", i.Namespace)
	a.expect(t, "controller", "unknown", "is no Lockstep Deployment", "--controller-namespace")
	a.expect(t, "leader", "problem", "no controller has ever led")
	a.expect(t, "record", "warning", "there is no record")
	if a.code != 1 {
		t.Errorf("exit code %d", a.code)
	}
}
