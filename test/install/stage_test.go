package install

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// installed is an installation whose controller runs as a process, with the arguments and the
// permissions that the chart renders, as its service account.
type installed struct {
	*testkit.World

	switches   switches
	objects    []*unstructured.Unstructured
	kubeconfig string
	lab        lab
	// pushed is the digest of the last image that was pushed.
	pushed string
}

// lab is the control plane of a test and the registry beside it.
type lab struct {
	cluster  *labtest.Cluster
	registry *registrylab.Server
	// authority is the file with the registry's certificate.
	authority string
}

// account is the user of an installation in the API server's log.
func (i *installed) account() string { return "system:serviceaccount:" + i.Own + ":" + i.Own }

// install makes the namespaces of an installation, and its account and roles in them. If it
// follows one namespace, a selector is the key of the label by which it does.
func (l lab) install(t *testing.T, s switches, one bool) *installed {
	t.Helper()
	i := &installed{World: testkit.NewWorldOn(t, l.cluster), switches: s, lab: l}
	switch {
	case s.selector != "":
		i.switches.selector = s.selector + "=" + i.Own
		i.Patch(t, &corev1.Namespace{}, i.Namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, s.selector, i.Own))
	case one:
		i.switches.namespaces = []string{i.Namespace}
	}
	if s.secrets != nil {
		i.switches.secrets = []string{i.Namespace}
	}
	values := i.switches.values() + "quiet: 200ms\n"
	var args []string
	if s.images {
		args = append(args, "--cloud-identity=false", fmt.Sprintf("'--registry-ca=%s=%s'", l.registry.Address, l.authority))
	}
	if s.images && s.admission {
		args = append(args, "--read-annotations=kube-image-deployer")
	}
	if s.env {
		args = append(args, "--form=env")
	}
	values += "extraArgs: [" + strings.Join(args, ", ") + "]\n"
	i.objects = render(t, helmtest.New(t, ""), i.Own, i.Own, values)
	for _, o := range i.objects {
		if o.GetKind() == "ServiceAccount" || strings.Contains(o.GetKind(), "Role") || strings.Contains(o.GetKind(), "Policy") {
			i.Create(t, o)
		}
	}
	i.kubeconfig = accountKubeconfig(t, i.World, i.Own)
	return i
}

// start runs the controller and waits until it is ready and lacks nothing.
func (i *installed) start(t *testing.T) *testkit.Controller {
	t.Helper()
	c := startAs(t, deployment(t, i.objects).Spec.Template.Spec.Containers[0].Args, i.kubeconfig, i.Own)
	c.AwaitReady(t, true)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		_, text := c.Probe(t, "/readyz?verbose")
		return !strings.Contains(text, "[-]"), "something is missing:\n" + text
	})
	return c
}

// startAs runs a controller with the arguments of its container.
func startAs(t *testing.T, args []string, kubeconfig, own string) *testkit.Controller {
	t.Helper()
	return testkit.Started(t, labtest.StartCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep"), Env: []string{"POD_NAMESPACE=" + own},
		Args: append(append([]string{}, args...), "--kubeconfig", kubeconfig, "--metrics-addr=0", "--probe-addr=127.0.0.1:0"),
	}))
}

func stop(t *testing.T, c *testkit.Controller) {
	t.Helper()
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// accountKubeconfig is a kubeconfig of the controller's service account.
func accountKubeconfig(t *testing.T, w *testkit.World, name string) string {
	t.Helper()
	token := &authenticationv1.TokenRequest{}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Own, Name: name}}
	if err := w.Client.SubResource("token").Create(t.Context(), sa, token); err != nil {
		t.Fatalf("ask for a token: %v", err)
	}
	config, err := clientcmd.LoadFromFile(w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// pullSecret is a Secret for the registry, and a service account that pulls with it.
func (l lab) pullSecret() string {
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	return fmt.Sprintf(`
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{%q:{"auth":%q}}}'}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: puller}, imagePullSecrets: [{name: pull}]}
`, l.registry.Address, auth)
}

// workload is a manifest. Its pods cost time and are only there when a test asks for them.
func workload(kind, name, annotations, pod string, replicas int) string {
	template := fmt.Sprintf("template: {metadata: {labels: {app: %s}}, spec: {terminationGracePeriodSeconds: 0, %s}}", name, pod)
	selector := fmt.Sprintf("selector: {matchLabels: {app: %s}}", name)
	version, spec := "apps/v1", fmt.Sprintf("replicas: %d, %s, %s", replicas, selector, template)
	switch kind {
	case "StatefulSet":
		spec += ", serviceName: none"
	case "DaemonSet":
		spec = selector + ", " + template
	case "CronJob":
		version, spec = "batch/v1", fmt.Sprintf(`schedule: "0 3 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, %s}}}}`, pod)
	case "Rollout":
		version, spec = "argoproj.io/v1alpha1", spec+", strategy: {canary: {}}"
	case "Worker":
		version = "example.com/v1"
	}
	return fmt.Sprintf("---\n{apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {%s}}, spec: {%s}}\n", version, kind, name, annotations, spec)
}

// kinds are those that are followed.
func (s switches) kinds() []string {
	all := []string{"Deployment", "StatefulSet", "DaemonSet", "Rollout", "CronJob"}
	if len(s.only) > 0 {
		all = s.only
	}
	if s.workers {
		return append(all, "Worker")
	}
	return all
}

// workers is a kind that Lockstep knows only by its flag.
const workers = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workers.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Worker, plural: workers, singular: worker, listKind: WorkerList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// installWorkers waits until there can be one.
func (l lab) installWorkers(t *testing.T) {
	t.Helper()
	c := testkit.NewClient(t, l.cluster.Kubeconfig())
	if err := c.Create(t.Context(), helmtest.Objects(t, workers)[0]); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk("Worker"))
		err := c.List(t.Context(), list)
		return err == nil, fmt.Sprintf("workers cannot be listed: %v", err)
	})
}
