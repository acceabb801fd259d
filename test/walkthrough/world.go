// Package walkthrough is the environment of revisioned configuration, and the walk-through
// that is played on it: Helm and our chart, the real Argo Rollouts controller, and pods, on
// a fake node or on a real one.
package walkthrough

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// World is one test's part of a control plane.
type World struct {
	T          *testing.T
	Cluster    *labtest.Cluster
	Kubeconfig string
	Namespace  string
	Client     client.Client
	Helm       *helmtest.Helm
	Lockstep   string // the path of the built program
}

// NewWorld creates a world on a control plane that has Argo Rollouts and a node.
func NewWorld(t *testing.T, cluster *labtest.Cluster) *World {
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
	return &World{
		T: t, Cluster: cluster, Kubeconfig: cluster.Kubeconfig(), Namespace: labtest.Namespace(t, cluster), Client: c,
		Helm: helmtest.New(t, cluster.Kubeconfig()), Lockstep: labtest.Binary(t, "./cmd/lockstep"),
	}
}

// AwaitRolloutKind waits until the API server lists the kind, a moment after it accepts it.
func (w *World) AwaitRolloutKind() {
	w.T.Helper()
	w.Eventually(func() (bool, string) {
		_, err := w.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, "v1alpha1")
		return err == nil, fmt.Sprint(err)
	})
}

// Continuous starts the controller for this test's namespace.
func (w *World) Continuous() *labtest.Running {
	w.T.Helper()
	return labtest.StartCommand(w.T, labtest.Command{Path: w.Lockstep, Env: []string{"KUBECONFIG=" + w.Kubeconfig}, Args: []string{
		"controller", "--namespaces", w.Namespace, "--own-namespace", w.Namespace, "--leader-elect=false",
		"--metrics-addr", "0", "--probe-addr", "0", "--revisions-grace", "1s", "--log-level", "debug",
	}})
}

// Job is the attach Job of a release: its command and its service account.
type Job struct {
	Args    []string
	Account string
}

// Deploy installs or upgrades the chart with values, and returns the attach Job of
// the release, nil when it has none.
func (w *World) Deploy(values string) *Job {
	w.T.Helper()
	// The fake node doesn't run programs, so the tests run the Job's command themselves. Helm
	// need not wait for a Job that does nothing.
	w.Upgrade(values, "--no-hooks")
	rendered := helmtest.Objects(w.T, w.Helm.Run(w.T, append([]string{"template"}, w.release(values)...)...))
	jobs := helmtest.OfKind(rendered, "Job")
	if len(jobs) == 0 {
		return nil
	}
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(jobs[0].Object, &job); err != nil {
		w.T.Fatal(err)
	}
	return JobOf(&job)
}

// JobOf reads the attach Job from the object.
func JobOf(o *batchv1.Job) *Job {
	pod := o.Spec.Template.Spec
	return &Job{Args: pod.Containers[0].Args, Account: pod.ServiceAccountName}
}

// Upgrade installs or upgrades the chart with values, and waits for the hooks.
func (w *World) Upgrade(values string, flags ...string) {
	w.T.Helper()
	w.Helm.Run(w.T, slices.Concat([]string{"upgrade", "--install"}, flags, w.release(values))...)
}

// release are the arguments that name the release, the chart and the values.
func (w *World) release(values string) []string {
	return []string{"demo", w.Helm.Chart("app"), "-n", w.Namespace, "-f", helmtest.ValuesFile(w.T, values)}
}

// RunJob runs the attach Job's command to its end, with the account and the role of the
// release.
func (w *World) RunJob(j *Job) {
	w.T.Helper()
	_, stderr, code := labtest.RunCommand(w.T, labtest.Command{Path: w.Lockstep, Args: j.Args, Env: []string{"KUBECONFIG=" + w.actAs(j.Account)}})
	if code != 0 {
		w.T.Fatalf("lockstep %s: exit %d\n%s", strings.Join(j.Args, " "), code, stderr)
	}
}

// actAs writes a kubeconfig with the permissions of a service account of the namespace.
func (w *World) actAs(account string) string {
	w.T.Helper()
	token := &authenticationv1.TokenRequest{}
	err := w.Client.SubResource("token").Create(w.T.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: account}}, token)
	if err != nil {
		w.T.Fatal(err)
	}
	w.awaitPermissions(account)
	config, err := clientcmd.LoadFromFile(w.Kubeconfig)
	if err != nil {
		w.T.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(w.T.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		w.T.Fatal(err)
	}
	return file
}

// awaitPermissions waits until the API server's authorizer knows a new role: a kubelet
// doesn't start a pod that soon.
func (w *World) awaitPermissions(account string) {
	w.T.Helper()
	w.Eventually(func() (bool, string) {
		role := &rbacv1.Role{}
		if err := w.Client.Get(w.T.Context(), w.Key(account), role); err != nil {
			return false, err.Error()
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + w.Namespace + ":" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.Namespace, Verb: "patch", Resource: "configmaps", Name: nameIn(role, "configmaps"),
			},
		}}
		err := w.Client.Create(w.T.Context(), review)
		return err == nil && review.Status.Allowed, fmt.Sprintf("%s may not patch ConfigMaps, error %v", account, err)
	})
}

// nameIn is the first object that a role names for a resource. The role doesn't allow
// others.
func nameIn(role *rbacv1.Role, resource string) string {
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) && len(rule.ResourceNames) > 0 {
			return rule.ResourceNames[0]
		}
	}
	return ""
}

// Eventually waits until check holds.
func (w *World) Eventually(check func() (bool, string)) {
	w.T.Helper()
	labtest.Eventually(w.T, testkit.Patience, check)
}

// Key is the name of an object of this world.
func (w *World) Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: name}
}

// List reads the application's objects of one kind.
func (w *World) List(list client.ObjectList) {
	w.T.Helper()
	if err := w.Client.List(w.T.Context(), list, client.InNamespace(w.Namespace), client.MatchingLabels{"app": "demo"}); err != nil {
		w.T.Fatal(err)
	}
}

// ConfigMaps are the application's ConfigMaps by name, with the names of their
// owners.
func (w *World) ConfigMaps() map[string][]string {
	w.T.Helper()
	list := &corev1.ConfigMapList{}
	w.List(list)
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

// ReplicaSets are the application's ReplicaSets, oldest first.
func (w *World) ReplicaSets() []appsv1.ReplicaSet {
	w.T.Helper()
	list := &appsv1.ReplicaSetList{}
	w.List(list)
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

// AwaitReplicaSet waits for the ReplicaSet that mounts a ConfigMap.
func (w *World) AwaitReplicaSet(configMap string) appsv1.ReplicaSet {
	w.T.Helper()
	var found appsv1.ReplicaSet
	w.Eventually(func() (bool, string) {
		for _, rs := range w.ReplicaSets() {
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

// AwaitOwners waits until exactly these ConfigMaps exist, with exactly these owners.
func (w *World) AwaitOwners(want map[string][]string) {
	w.T.Helper()
	for _, owners := range want {
		slices.Sort(owners)
	}
	w.Eventually(func() (bool, string) {
		got := w.ConfigMaps()
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("ConfigMaps and owners are %v, want %v", got, want)
	})
}

// Pods are the running pods that mount a ConfigMap.
func (w *World) Pods(configMap string) []corev1.Pod {
	w.T.Helper()
	list := &corev1.PodList{}
	w.List(list)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || mounts(p.Spec) != configMap
	})
}

// AwaitPods waits until so many pods run with each ConfigMap.
func (w *World) AwaitPods(want map[string]int) {
	w.T.Helper()
	w.Eventually(func() (bool, string) {
		got := map[string]int{}
		for configMap := range want {
			got[configMap] = len(w.Pods(configMap))
		}
		return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprintf("running pods by ConfigMap are %v, want %v", got, want)
	})
}

// ConfigMapOf finds the one ConfigMap of a color.
func (w *World) ConfigMapOf(color string) string {
	w.T.Helper()
	list := &corev1.ConfigMapList{}
	w.List(list)
	for _, cm := range list.Items {
		if cm.Data["color"] == color {
			return cm.Name
		}
	}
	w.T.Fatalf("no ConfigMap has the color %s", color)
	return ""
}

// Rollout reads the application's Rollout.
func (w *World) Rollout() *unstructured.Unstructured {
	w.T.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
	if err := w.Client.Get(w.T.Context(), w.Key("demo"), o); err != nil {
		w.T.Fatal(err)
	}
	return o
}

// AwaitPause waits until the canary waits for a promotion.
func (w *World) AwaitPause() {
	w.T.Helper()
	w.Eventually(func() (bool, string) {
		phase, _, _ := unstructured.NestedString(w.Rollout().Object, "status", "phase")
		conditions, _, _ := unstructured.NestedSlice(w.Rollout().Object, "status", "pauseConditions")
		return phase == "Paused" && len(conditions) > 0, "the Rollout is " + phase
	})
}

// Promote does what "kubectl argo rollouts promote" does.
func (w *World) Promote() {
	w.T.Helper()
	w.AwaitPause()
	w.patchStatus(`{"status":{"pauseConditions":null}}`)
}

// Abort does what "kubectl argo rollouts abort" does.
func (w *World) Abort() {
	w.T.Helper()
	w.patchStatus(`{"status":{"abort":true}}`)
}

func (w *World) patchStatus(body string) {
	w.T.Helper()
	if err := w.Client.Status().Patch(w.T.Context(), w.Rollout(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.T.Fatal(err)
	}
}

// Delete deletes an object; its dependents follow later.
func (w *World) Delete(o client.Object) {
	w.T.Helper()
	background := metav1.DeletePropagationBackground
	if err := w.Client.Delete(w.T.Context(), o, &client.DeleteOptions{PropagationPolicy: &background}); err != nil {
		w.T.Fatal(err)
	}
}
