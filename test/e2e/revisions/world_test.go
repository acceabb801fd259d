package revisions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
)

// patience bounds every wait for a controller of the real control plane.
const patience = 90 * time.Second

// world is one test's part of the shared control plane.
type world struct {
	t          *testing.T
	cluster    *labtest.Cluster
	kubeconfig string
	namespace  string
	client     client.Client
	helm       *helmtest.Helm
	lockstep   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOn(t, labtest.Shared(t, labtest.KWOK, labtest.ArgoRollouts))
	// The API server lists a new kind a moment after it accepts it.
	w.eventually(func() (bool, string) {
		_, err := w.client.RESTMapper().RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
		return err == nil, fmt.Sprint(err)
	})
	return w
}

func newWorldOn(t *testing.T, cluster *labtest.Cluster) *world {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, cluster: cluster, kubeconfig: cluster.Kubeconfig(), namespace: labtest.Namespace(t, cluster), client: c,
		helm: helmtest.New(t, cluster.Kubeconfig()), lockstep: labtest.Binary(t, "./cmd/lockstep"),
	}
}

// continuous starts the controller for this test's namespace.
func (w *world) continuous() *labtest.Running {
	w.t.Helper()
	return labtest.StartCommand(w.t, labtest.Command{Path: w.lockstep, Env: []string{"KUBECONFIG=" + w.kubeconfig}, Args: []string{
		"controller", "--namespaces", w.namespace, "--own-namespace", w.namespace, "--leader-elect=false",
		"--metrics-addr", "0", "--probe-addr", "0", "--revisions-grace", "1s", "--log-level", "debug",
	}})
}

// job is the attach Job of a release: what it runs, and as whom.
type job struct {
	args    []string
	account string
}

// deploy installs or upgrades the chart with values, and returns the attach Job of
// the release, nil when it has none.
func (w *world) deploy(values string) *job {
	w.t.Helper()
	file := helmtest.ValuesFile(w.t, values)
	args := []string{"demo", w.helm.Chart("app"), "-n", w.namespace, "-f", file}
	// The fake node runs no programs, so the tests run the Job's command
	// themselves; Helm need not wait for a Job that does nothing.
	w.helm.Run(w.t, append([]string{"upgrade", "--install", "--no-hooks"}, args...)...)
	rendered := helmtest.Objects(w.t, w.helm.Run(w.t, append([]string{"template"}, args...)...))
	for _, o := range helmtest.OfKind(rendered, "Job") {
		return jobOf(w.t, o)
	}
	return nil
}

func jobOf(t *testing.T, o *unstructured.Unstructured) *job {
	t.Helper()
	var rendered batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &rendered); err != nil {
		t.Fatal(err)
	}
	pod := rendered.Spec.Template.Spec
	return &job{args: pod.Containers[0].Args, account: pod.ServiceAccountName}
}

// runJob runs the attach Job's command to its end, as the account and with the
// role that the release has brought.
func (w *world) runJob(j *job) {
	w.t.Helper()
	_, stderr, code := labtest.RunCommand(w.t, labtest.Command{Path: w.lockstep, Args: j.args, Env: []string{"KUBECONFIG=" + w.actAs(j.account)}})
	if code != 0 {
		w.t.Fatalf("lockstep %s: exit %d\n%s", strings.Join(j.args, " "), code, stderr)
	}
}

// actAs writes a kubeconfig that acts as a service account of the namespace.
func (w *world) actAs(account string) string {
	w.t.Helper()
	token := &authenticationv1.TokenRequest{}
	err := w.client.SubResource("token").Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: account}}, token)
	if err != nil {
		w.t.Fatal(err)
	}
	w.awaitRights(account)
	config, err := clientcmd.LoadFromFile(w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// awaitRights waits until the API server's authorizer knows a new role: a kubelet
// starts no pod that soon.
func (w *world) awaitRights(account string) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + w.namespace + ":" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.namespace, Verb: "patch", Resource: "configmaps",
			},
		}}
		err := w.client.Create(w.t.Context(), review)
		return err == nil && review.Status.Allowed, fmt.Sprintf("%s may not patch ConfigMaps, error %v", account, err)
	})
}

func (w *world) eventually(check func() (bool, string)) {
	w.t.Helper()
	labtest.Eventually(w.t, patience, check)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

func (w *world) list(list client.ObjectList) {
	w.t.Helper()
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": "demo"}); err != nil {
		w.t.Fatal(err)
	}
}

// configMaps are the application's ConfigMaps by name, with the names of their
// owners.
func (w *world) configMaps() map[string][]string {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	w.list(list)
	found := map[string][]string{}
	for _, cm := range list.Items {
		found[cm.Name] = ownerNames(&cm)
	}
	return found
}

func ownerNames(o client.Object) []string {
	names := []string{}
	for _, owner := range o.GetOwnerReferences() {
		names = append(names, owner.Name)
	}
	slices.Sort(names)
	return names
}

// replicaSets are the application's ReplicaSets, oldest first.
func (w *world) replicaSets() []appsv1.ReplicaSet {
	w.t.Helper()
	list := &appsv1.ReplicaSetList{}
	w.list(list)
	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int {
		return strings.Compare(revisionOf(a), revisionOf(b))
	})
	return list.Items
}

func revisionOf(rs appsv1.ReplicaSet) string {
	for _, annotation := range []string{"rollout.argoproj.io/revision", "deployment.kubernetes.io/revision"} {
		if n, ok := rs.Annotations[annotation]; ok {
			return fmt.Sprintf("%09s", n)
		}
	}
	return ""
}

// awaitReplicaSet waits for the ReplicaSet that mounts a ConfigMap.
func (w *world) awaitReplicaSet(configMap string) appsv1.ReplicaSet {
	w.t.Helper()
	var found appsv1.ReplicaSet
	w.eventually(func() (bool, string) {
		for _, rs := range w.replicaSets() {
			if mounts(rs.Spec.Template.Spec) == configMap {
				found = rs
				return true, ""
			}
		}
		return false, "no ReplicaSet mounts " + configMap
	})
	return found
}

// mounts is the ConfigMap in the volume that the chart adds.
func mounts(spec corev1.PodSpec) string {
	for _, v := range spec.Volumes {
		if v.Name == "configmaps-volume" && v.Projected != nil {
			return v.Projected.Sources[0].ConfigMap.Name
		}
	}
	return ""
}

// awaitOwners waits until the ConfigMaps and their owners are exactly these.
func (w *world) awaitOwners(want map[string][]string) {
	w.t.Helper()
	for _, owners := range want {
		slices.Sort(owners)
	}
	w.eventually(func() (bool, string) {
		got := w.configMaps()
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("ConfigMaps and owners are %v, want %v", got, want)
	})
}

// pods are the running pods that mount a ConfigMap.
func (w *world) pods(configMap string) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.list(list)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || mounts(p.Spec) != configMap
	})
}

func (w *world) awaitPods(want map[string]int) {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		got := map[string]int{}
		for configMap := range want {
			got[configMap] = len(w.pods(configMap))
		}
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("running pods by ConfigMap are %v, want %v", got, want)
	})
}

// configMapOf finds the one ConfigMap of a color.
func (w *world) configMapOf(color string) string {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	w.list(list)
	for _, cm := range list.Items {
		if cm.Data["color"] == color {
			return cm.Name
		}
	}
	w.t.Fatalf("no ConfigMap has the color %s", color)
	return ""
}

func (w *world) rollout() *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
	if err := w.client.Get(w.t.Context(), w.key("demo"), o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

// awaitPause waits until the canary waits for a person.
func (w *world) awaitPause() {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		phase, _, _ := unstructured.NestedString(w.rollout().Object, "status", "phase")
		conditions, _, _ := unstructured.NestedSlice(w.rollout().Object, "status", "pauseConditions")
		return phase == "Paused" && len(conditions) > 0, "the Rollout is " + phase
	})
}

// promote does what "kubectl argo rollouts promote" does.
func (w *world) promote() {
	w.t.Helper()
	w.awaitPause()
	w.patchStatus(`{"status":{"pauseConditions":null}}`)
}

// abort does what "kubectl argo rollouts abort" does.
func (w *world) abort() {
	w.t.Helper()
	w.patchStatus(`{"status":{"abort":true}}`)
}

func (w *world) patchStatus(body string) {
	w.t.Helper()
	if err := w.client.Status().Patch(w.t.Context(), w.rollout(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(o client.Object) {
	w.t.Helper()
	background := metav1.DeletePropagationBackground
	if err := w.client.Delete(w.t.Context(), o, &client.DeleteOptions{PropagationPolicy: &background}); err != nil {
		w.t.Fatal(err)
	}
}

// home makes a home folder whose kubeconfig is the given one, where
// configmap-attacher looks for it.
func home(t *testing.T, kubeconfig string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(kubeconfig)
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, ".kube"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ".kube", "config"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustCreate(ctx context.Context, t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(ctx, o); err != nil {
		t.Fatal(err)
	}
}
