package docs_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// application stands in for the program beside the agent: it counts how often it is
// told to reload, and says that it has. Real ones are in test/apps and test/node.
type application struct {
	*httptest.Server

	told atomic.Int64
}

func newApplication(t *testing.T) *application {
	t.Helper()
	a := &application{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			a.told.Add(1)
		}
		_, _ = io.WriteString(w, "prometheus_config_last_reload_successful 1\n")
	}))
	t.Cleanup(a.Close)
	return a
}

// awaitTold waits until the application was told more often than before.
func (a *application) awaitTold(t *testing.T, before int64) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		told := a.told.Load()
		return told > before, fmt.Sprintf("the agent has notified the application %d times, want more than %d", told, before)
	})
}

// TestNewManifestsOfTheAgent runs the agent's container of two pages as a process:
// its arguments, with directories and addresses of this machine, and its permissions.
func TestNewManifestsOfTheAgent(t *testing.T) {
	t.Parallel()
	t.Run("InThePlaceOfK8sSidecar", func(t *testing.T) {
		t.Parallel()
		app, w, dir := newApplication(t), testkit.NewWorld(t), t.TempDir()
		objects := agentObjects(t, "docs/migrate/k8s-sidecar.md")
		account := labtest.NewAccount(t, w.Cluster, w.Namespace)
		account.Allow(t, rulesOf(t, objects)...)
		awaitRight(t, account)
		args := agentArgs(t, objects, "/dashboards", dir, "http://127.0.0.1:3000", app.URL, ":8080", "127.0.0.1:0")
		startAgent(t, append(args, "--kubeconfig", account.Kubeconfig, "--namespace", w.Namespace))
		dashboard := testkit.ConfigMap("one", "one.json", "{}")
		dashboard.Labels = map[string]string{"grafana_dashboard": "1"}
		w.Create(t, dashboard)
		awaitFile(t, filepath.Join(dir, "one.json"), "{}")
		before := app.told.Load()
		w.SetConfig(t, "one", "one.json", `{"title": "two"}`)
		awaitFile(t, filepath.Join(dir, "one.json"), `{"title": "two"}`)
		app.awaitTold(t, before)
	})
	t.Run("InThePlaceOfConfigmapReload", func(t *testing.T) {
		t.Parallel()
		app, dir := newApplication(t), t.TempDir()
		path := filepath.Join(dir, "prometheus.yml")
		write(t, path, "one")
		startAgent(t, agentArgs(t, agentObjects(t, "docs/migrate/configmap-reload.md"), "/etc/config", dir, "http://127.0.0.1:9090", app.URL, ":8080", "127.0.0.1:0"))
		app.awaitTold(t, 0)
		write(t, path, "two")
		app.awaitTold(t, 1)
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func awaitFile(t *testing.T, path, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got, err := os.ReadFile(path)
		return err == nil && string(got) == want, "the file has " + string(got)
	})
}

func startAgent(t *testing.T, args []string) {
	t.Helper()
	labtest.StartCommand(t, labtest.Command{Path: labtest.Binary(t, "./cmd/lockstep-sync"), Args: args})
}

// awaitRight waits until the API server's authorizer knows the new role.
func awaitRight(t *testing.T, account *labtest.Account) {
	t.Helper()
	testkit.AwaitListing(t, account, true, &corev1.ConfigMapList{}, client.InNamespace(account.Namespace))
}

func agentObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, o := range objectsOf(t, path) {
		found = append(found, o.(*unstructured.Unstructured)) // objectsOf makes nothing else
	}
	return found
}

// agentArgs are the arguments of the container that runs the agent, with some texts
// replaced in pairs.
func agentArgs(t *testing.T, objects []*unstructured.Unstructured, replace ...string) []string {
	t.Helper()
	workload := &appsv1.Deployment{}
	decode(t, objects, "Deployment", workload)
	pod := workload.Spec.Template.Spec
	containers := slices.Concat(pod.InitContainers, pod.Containers)
	agent := slices.IndexFunc(containers, func(c corev1.Container) bool { return strings.Contains(c.Image, "/lockstep-sync:") })
	if agent < 0 {
		t.Fatal("no container runs the agent")
	}
	args := slices.Clone(containers[agent].Args)
	for i := range args {
		args[i] = strings.NewReplacer(replace...).Replace(args[i])
	}
	return args
}

func rulesOf(t *testing.T, objects []*unstructured.Unstructured) []labtest.Rule {
	t.Helper()
	role := &rbacv1.Role{}
	decode(t, objects, "Role", role)
	var rules []labtest.Rule
	for _, r := range role.Rules {
		rules = append(rules, labtest.Rule{Groups: r.APIGroups, Resources: r.Resources, Names: r.ResourceNames, Verbs: r.Verbs})
	}
	return rules
}

// decode reads the one object of a kind.
func decode(t *testing.T, objects []*unstructured.Unstructured, kind string, into any) {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, into); err != nil {
		t.Fatal(err)
	}
}
