// Package examples_test runs the manifests of this folder on a real control plane.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

const account = "system:serviceaccount:lockstep-system:lockstep"

// TestControllerHasExactlyTheRightsItUses runs the controller with the arguments
// and the rights of controller.yaml, and compares the rights with the requests
// that the API server has seen: as the file is, and with the rules for revisioned
// objects that it has in comments.
func TestControllerHasExactlyTheRightsItUses(t *testing.T) {
	t.Parallel()
	text := slurp(t, "controller.yaml")
	t.Run("as it is", func(t *testing.T) {
		t.Parallel()
		usesWhatItHas(t, text, func(client.Client) {})
	})
	t.Run("with revisions", func(t *testing.T) {
		t.Parallel()
		more := uncomment(t, text, "# For ConfigMaps and Secrets labelled lockstep.dev/revisioned=true")
		usesWhatItHas(t, more, func(admin client.Client) { attach(t, admin) })
	})
}

func usesWhatItHas(t *testing.T, controller string, play func(admin client.Client)) {
	t.Helper()
	audit := filepath.Join(t.TempDir(), "audit.log")
	cluster := labtest.Private(t, labtest.Options{APIServerFlags: []string{
		"--audit-policy-file=" + auditPolicy(t), "--audit-log-path=" + audit,
	}})
	admin := connect(t, cluster.Kubeconfig())
	install(t, admin, controller)
	first := runController(t, cluster, admin)
	install(t, admin, slurp(t, "workload.yaml"))
	awaitRecord(t, admin)
	deliver(t, admin, "good morning", 1)
	mustStop(t, first)
	// A change that nobody watched: the next process looks at the revisions.
	change(t, admin, "good evening")
	second := runController(t, cluster, admin)
	deliver(t, admin, "good night", 2)
	play(admin)
	if unused := difference(granted(t, admin), requests(t, audit), rare()); len(unused) > 0 {
		t.Errorf("granted and never used: %q", unused)
	}
	mustStop(t, second)
}

// uncomment takes the rules after a heading out of their comments, up to the next one.
func uncomment(t *testing.T, text, heading string) string {
	t.Helper()
	before, after, found := strings.Cut(text, heading)
	if !found {
		t.Fatalf("there is no %q", heading)
	}
	lines := strings.Split(after, "\n")
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, "#") || strings.HasPrefix(line, "# For ") {
			break
		}
		if strings.HasPrefix(line, "# - ") || strings.HasPrefix(line, "#   ") {
			lines[i+1] = line[len("# "):]
		}
	}
	return before + heading + strings.Join(lines, "\n")
}

// attach makes a ConfigMap and a Secret that a Deployment's pods load, and waits
// until they belong to its revision.
func attach(t *testing.T, admin client.Client) {
	t.Helper()
	labels := map[string]string{"app": "revisioned"}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web-3fa9c1d2e4", Labels: map[string]string{"lockstep.dev/revisioned": "true"}}
	name := corev1.LocalObjectReference{Name: meta.Name}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web", EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name}},
	}}}}
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}}
	workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "revisioned"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}}
	for _, o := range append(objects, workload) {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		labtest.Eventually(t, time.Minute, func() (bool, string) {
			err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			return err == nil && len(o.GetOwnerReferences()) == 1, fmt.Sprintf("%T has the owners %v, error %v", o, o.GetOwnerReferences(), err)
		})
	}
}

// rare are rights whose use this test does not see.
func rare() []string {
	return []string{
		// A streamed list is a watch; older API servers are asked for a list.
		"list configmaps", "list secrets", "list namespaces", "list deployments.apps",
		"list statefulsets.apps", "list daemonsets.apps", "list cronjobs.batch", "list rollouts.argoproj.io", "list jobs.batch",
		// As for Deployments, whose use is seen.
		"patch statefulsets.apps", "patch daemonsets.apps", "list controllerrevisions.apps",
		// Argo Rollouts is not installed here.
		"watch rollouts.argoproj.io", "patch rollouts.argoproj.io",
		// When two processes write at once, and when an event repeats.
		"get configmaps", "patch events", "patch events.events.k8s.io",
	}
}

func mustStop(t *testing.T, controller *labtest.Running) {
	t.Helper()
	if code := controller.Stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if log := controller.Stderr(); strings.Contains(log, "forbidden") {
		t.Errorf("a right is missing:\n%s", log)
	}
}

// runController runs the container of controller.yaml as a process, as its
// service account, and waits until it is ready to lead.
func runController(t *testing.T, cluster *labtest.Cluster, admin client.Client) *labtest.Running {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "lockstep-system", Name: "lockstep"}, d); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(d.Spec.Template.Spec.Containers[0].Args),
		"--kubeconfig", accountKubeconfig(t, cluster, admin), "--metrics-addr=0", "--probe-addr=0", "--quiet=1s")
	return labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep"), Args: args, Env: []string{"POD_NAMESPACE=lockstep-system"},
	})
}

// awaitRecord waits until Lockstep remembers the example's workload.
func awaitRecord(t *testing.T, admin client.Client) {
	t.Helper()
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		list := &corev1.ConfigMapList{}
		err := admin.List(t.Context(), list, client.InNamespace("lockstep-system"), client.HasLabels{"lockstep.dev/state"})
		return err == nil && len(list.Items) > 0, "nothing is on record"
	})
}

func change(t *testing.T, admin client.Client, greeting string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-settings"}}
	body := `{"data":{"greeting":"` + greeting + `"}}`
	if err := admin.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		t.Fatal(err)
	}
}

// deliver changes a source and waits until the workload has that many events of
// a rollout.
func deliver(t *testing.T, admin client.Client, greeting string, want int) {
	t.Helper()
	change(t, admin, greeting)
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		list := &eventsv1.EventList{}
		if err := admin.List(t.Context(), list, client.InNamespace("shop")); err != nil {
			return false, err.Error()
		}
		got := 0
		for _, e := range list.Items {
			if e.Reason == "Reloaded" {
				got++
			}
		}
		return got >= want, fmt.Sprintf("the workload has %d events Reloaded, want %d", got, want)
	})
}

func auditPolicy(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	policy := `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
		"rules": [{"level": "Metadata", "users": ["` + account + `"]}]}`
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// requests lists what the account has asked for, as "patch deployments.apps".
func requests(t *testing.T, audit string) []string {
	t.Helper()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for line := range bytes.Lines(text) {
		var e struct {
			Verb      string
			ObjectRef struct{ Resource, APIGroup string }
		}
		if json.Unmarshal(line, &e) == nil && e.ObjectRef.Resource != "" {
			used = append(used, right(e.Verb, e.ObjectRef.Resource, e.ObjectRef.APIGroup))
		}
	}
	return used
}

// granted lists what the account may do, in the same words.
func granted(t *testing.T, admin client.Client) []string {
	t.Helper()
	wide, own := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	err := errors.Join(
		admin.Get(t.Context(), client.ObjectKey{Name: "lockstep"}, wide),
		admin.Get(t.Context(), client.ObjectKey{Namespace: "lockstep-system", Name: "lockstep"}, own),
	)
	if err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, rule := range append(wide.Rules, own.Rules...) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, right(verb, resource, rule.APIGroups[0]))
			}
		}
	}
	return rights
}

func right(verb, resource, group string) string {
	return strings.TrimSuffix(verb+" "+resource+"."+group, ".")
}

func difference(all []string, without ...[]string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return slices.Contains(slices.Concat(without...), s) })
}

func slurp(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func install(t *testing.T, admin client.Client, text string) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			t.Fatal(err)
		}
		strict := client.WithFieldValidation(admin, metav1.FieldValidationStrict)
		if err := strict.Create(t.Context(), o); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func accountKubeconfig(t *testing.T, cluster *labtest.Cluster, admin client.Client) string {
	t.Helper()
	token := &authenticationv1.TokenRequest{}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "lockstep-system", Name: "lockstep"}}
	if err := admin.SubResource("token").Create(t.Context(), sa, token); err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	user := config.Contexts[config.CurrentContext].AuthInfo
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func connect(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, authenticationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
