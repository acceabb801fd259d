package main_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// startOnCluster plays on the cluster of a kubeconfig.
func startOnCluster(t *testing.T, lockstep, kubeconfig string, env ...string) *labtest.Running {
	t.Helper()
	return start(t, lockstep, append([]string{"CLUSTER=1", "YES=1", "KUBECONFIG=" + kubeconfig}, env...)...)
}

// namespaceOf waits until the demo says which namespace it has made.
func namespaceOf(t *testing.T, demo *labtest.Running) string {
	t.Helper()
	said := regexp.MustCompile(`Created namespace (lockstep-demo-[a-z0-9]{5})\.`)
	var name string
	labtest.Eventually(t, ending, func() (bool, string) {
		if found := said.FindStringSubmatch(demo.Stdout()); found != nil {
			name = found[1]
		}
		return name != "", "the demo hasn't created a namespace; it printed\n" + demo.Stdout()
	})
	return name
}

// exists tells whether the cluster has a namespace.
func exists(t *testing.T, cluster *labtest.Cluster, namespace string) bool {
	t.Helper()
	_, err := clientFor(t, cluster).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func clientFor(t *testing.T, cluster *labtest.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// TestStoryOnTheReadersCluster: the story stays on the cluster that the reader agreed
// to, although the current context changes meanwhile.
func TestStoryOnTheReadersCluster(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t, labtest.KWOK, labtest.ArgoRollouts)
	// Without Rollouts the last chapter would be left out.
	(&testkit.World{Client: testkit.NewClient(t, cluster.Kubeconfig())}).AwaitServed(t, testkit.Blank(t, "rollout/any"))
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text, err := os.ReadFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	demo := startOnCluster(t, labtest.Binary(t, "./cmd/lockstep"), kubeconfig)
	namespace := namespaceOf(t, demo)
	moved := strings.Replace(string(text), "current-context: lab", "current-context: elsewhere", 1)
	if moved == string(text) {
		t.Fatal("the kubeconfig names its current context in another way")
	}
	if err := os.WriteFile(kubeconfig, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := demo.ExitCode(t, ending); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		"    context     lab\n",
		cluster.Server() + ", Kubernetes " + cluster.Version(),
		"The last chapter, a canary, runs three pods of docker.io/nginxinc/nginx-unprivileged.\n",
		"schedulingGates: [{name: lockstep.dev/demo}]",
		"two changes, one rollout (ReplicaSets of the Deployment: 2)",
		"rolls out deployment/web: configmap/web-settings",
		"an image and a ConfigMap, one rollout (ReplicaSets of the Deployment: 6)",
		"Kubernetes removed configmap/checkout-settings-",
		"The end, after",
	} {
		if !strings.Contains(demo.Stdout(), want) {
			t.Errorf("the story does not say %q", want)
		}
	}
	if exists(t, cluster, namespace) {
		t.Errorf("namespace %s is still there", namespace)
	}
}

func TestInterruptedStoryRemovesItsNamespace(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	demo := startOnCluster(t, labtest.Binary(t, "./cmd/lockstep"), cluster.Kubeconfig(), "KEEP=1")
	namespace := namespaceOf(t, demo)
	labtest.Eventually(t, ending, func() (bool, string) {
		return strings.Contains(demo.Stdout(), "Baseline"), "the demo doesn't show a decision by Lockstep; it printed\n" + demo.Stdout()
	})
	demo.Signal(t, syscall.SIGINT)
	if code := demo.ExitCode(t, ending); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if exists(t, cluster, namespace) {
		t.Errorf("namespace %s is still there", namespace)
	}
}

// TestFailedStoryOnACluster: a failure removes the namespace as well; with KEEP it stays,
// and the demo says how to remove it, at its end and at the beginning of the next one.
func TestFailedStoryOnACluster(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	failed := startOnCluster(t, "/bin/false", cluster.Kubeconfig())
	namespace := namespaceOf(t, failed)
	if code := failed.ExitCode(t, ending); code != 1 || !strings.Contains(failed.Stdout(), "FAILED chapter 1") {
		t.Errorf("exit code %d, want 1 and the failure", code)
	}
	if exists(t, cluster, namespace) {
		t.Errorf("namespace %s is still there", namespace)
	}

	kept := startOnCluster(t, "/bin/false", cluster.Kubeconfig(), "KEEP=1")
	namespace = namespaceOf(t, kept)
	t.Cleanup(func() {
		if err := clientFor(t, cluster).CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	kept.ExitCode(t, ending)
	remove := "kubectl --context lab delete namespace " + namespace
	if !strings.Contains(kept.Stdout(), "Remove it with: "+remove) || !exists(t, cluster, namespace) {
		t.Errorf("kept: namespace %s is there: %t", namespace, exists(t, cluster, namespace))
	}

	next := startOnCluster(t, "/bin/false", cluster.Kubeconfig(), "YES=")
	if code := next.ExitCode(t, ending); code != 1 || !strings.Contains(next.Stdout(), "demo: there is no terminal to ask at: say yes with YES=1") {
		t.Errorf("without a terminal: exit code %d, want 1 and what to do", code)
	}
	if !strings.Contains(next.Stdout(), remove) || strings.Contains(next.Stdout(), "Created namespace") {
		t.Errorf("the next demo names what is left, and makes nothing: %s", next.Stdout())
	}
}

// TestStoryThatCannotBegin: one line, with what to do.
func TestStoryThatCannotBegin(t *testing.T) {
	t.Parallel()
	cluster := labtest.Shared(t)
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "nowhere")
	if err := os.WriteFile(nowhere, []byte(`{apiVersion: v1, kind: Config, current-context: gone, contexts: [{name: gone, context: {cluster: gone, user: gone}}],
		clusters: [{name: gone, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: gone, user: {}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	account := labtest.NewAccount(t, cluster, labtest.Namespace(t, cluster))
	cases := map[string]struct {
		env  []string
		want string
	}{
		"no context":     {[]string{"KUBECONFIG=" + filepath.Join(dir, "missing")}, "there is no current context in " + filepath.Join(dir, "missing") + ": choose one with \"kubectl config use-context NAME\""},
		"no answer":      {[]string{"KUBECONFIG=" + nowhere}, "context gone, https://127.0.0.1:1: the API server gives no answer"},
		"no permissions": {[]string{"KUBECONFIG=" + account.Kubeconfig}, "you may not create namespaces, delete namespaces, list configmaps, create secrets, watch secrets, patch deployments, create leases: choose a context"},
		"no chapter":     {[]string{"CHAPTERS=all"}, "CHAPTERS=all: say how many to play, 1 to 7"},
		"no programs":    {[]string{"CLUSTER=", "KUBEBUILDER_ASSETS=" + dir}, "KUBEBUILDER_ASSETS=" + dir + ": there is no etcd: name a directory with etcd and kube-apiserver"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			demo := startOnCluster(t, "/bin/false", "", c.env...)
			if code := demo.ExitCode(t, ending); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			said := strings.TrimSpace(demo.Stdout())
			if !strings.HasPrefix(said, "demo: ") || !strings.Contains(said, c.want) || strings.Contains(said, "\n") || demo.Stderr() != "" {
				t.Errorf("said %q, want the one line %q", said, c.want)
			}
		})
	}
}
