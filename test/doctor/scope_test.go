package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// args gives the controller's Deployment other arguments.
func (i *installation) args(t *testing.T, flags ...string) {
	t.Helper()
	words := strings.Join(append([]string{"controller", "--revisions=false"}, flags...), `","`)
	i.own().Patch(t, &appsv1.Deployment{}, "lockstep", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"lockstep","image":"lockstep","args":["%s"]}]}}}}`, words))
}

// TestWhatIsLookedAt: only the namespaces that the controller watches, and those by their names.
func TestWhatIsLookedAt(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.examine(t, "-n", i.Namespace+"-typo").expect(t, "settings", "problem", "namespace "+i.Namespace+"-typo does not exist")

	// Other tests have workloads in other namespaces, which is told too.
	// The own namespace has a workload too: the Deployment of the controller.
	i.examine(t).expect(t, "settings", "", "1 workload checked, 1 followed")
	i.Patch(t, &corev1.Namespace{}, i.Namespace, fmt.Sprintf(`{"metadata":{"labels":{"team":%q}}}`, i.Namespace))
	i.args(t, "--namespace-selector=team="+i.Namespace)
	selected := i.examine(t)
	selected.expect(t, "settings", "", "1 workload checked, 1 followed")
	selected.expect(t, "permissions", "ok")
	selected.expect(t, "leader", "warning", "isn't a pod of deployment/lockstep") // it is a process of the test
	i.args(t, "--namespace-selector=team="+i.Namespace+"-none")
	i.examine(t).expect(t, "settings", "warning", "0 workloads checked", "does not watch", i.Namespace)
}

// TestSelectedPermissions: any namespace may get the labels, so that permissions in some of them are not
// enough.
func TestSelectedPermissions(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.account.AllowEverywhere(t, testkit.SecretRules()...)
	i.args(t, "--namespace-selector=team=shop")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // until the authorizer has seen it
		c := i.examine(t).checks["permissions"]
		return strings.Contains(c.text(), "patch deployments.apps in all namespaces: needed for rolling them"), c.text()
	})
}

// TestAskedOfFlags: what the controller does not look at by its flags is not told to be in step,
// and no estimate is made of it.
func TestAskedOfFlags(t *testing.T) {
	t.Parallel()
	i := install(t)
	ask := func(says []string, command ...string) {
		t.Helper()
		stdout, stderr, code := inprocess.Run(t, append(command, "--kubeconfig", i.Cluster.Kubeconfig(), "--controller-namespace", i.Own, "-n", i.Namespace)...)
		if code != 0 || strings.Contains(stdout, "Estimate:") || slices.ContainsFunc(says, func(text string) bool { return !strings.Contains(stdout, text) }) {
			t.Errorf("%q ended with %d and wrote, instead of %q:\n%s%s", command, code, says, stdout, stderr)
		}
	}
	status, explain, source := []string{"status"}, []string{"explain", "deployment/web"}, []string{"explain", "configmap/app"}
	for _, command := range [][]string{status, explain, source} {
		ask([]string{"InStep"}, command...)
	}
	own := "--namespaces=" + i.Namespace // that of no other test
	i.args(t, "--reload=false", own)
	ask([]string{"InStep"}, status...) // who leads is no pod of the Deployment
	if code := i.controller.Stop(t); code != 0 {
		t.Fatalf("the controller ended with %d", code)
	}
	i.Patch(t, &corev1.ConfigMap{}, "app", `{"data":{"changed":"while nobody looks"}}`)
	for _, command := range [][]string{status, explain, source} {
		ask([]string{"ReloadOff"}, command...)
	}
	ask([]string{"a controller that follows ConfigMaps and Secrets"}, explain...)
	i.args(t, "--namespaces="+i.Own)
	for _, command := range [][]string{status, explain, source} {
		ask([]string{"NotWatched"}, command...)
	}
	ask([]string{"a controller that watches the namespace", "Deployment"}, explain...)
	i.args(t, "--namespace-selector=team=other")
	ask([]string{"NotWatched"}, status...)
	i.args(t, own, "--built-in-kinds=cronjob,sts")
	for _, command := range [][]string{status, explain, source} {
		ask([]string{"KindOff"}, command...)
	}
	ask([]string{"a controller that follows this kind of workload"}, explain...)
	off := i.examine(t)
	off.expect(t, "kinds", "ok", "followed: statefulset, cronjob; off: deployment, daemonset, rollout")
	off.expect(t, "settings", "warning", "deployment/web in namespace "+i.Namespace+" (KindOff)", "enable the kind in the controller")
	i.Patch(t, &appsv1.Deployment{}, "web", fmt.Sprintf(`{"metadata":{"annotations":{%q:"127.0.0.1:1/app:1"}}}`, settings.ImagePrefix+"app"))
	i.args(t, own)
	ask([]string{"ImagesOff", "app:1"}, "images")
}

// metadata: what people wrote on ConfigMaps and namespaces is looked at too.
func metadata(t *testing.T, i *installation) {
	t.Helper()
	i.Patch(t, &corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"lockstep.dev/relod":"never"}}}`)
	i.Patch(t, &corev1.Namespace{}, i.Namespace, `{"metadata":{"annotations":{"lockstep.dev/reload":"maybe"}}}`)
	i.examine(t).expect(t, "settings", "problem", "configmap/app in namespace "+i.Namespace+": annotation lockstep.dev/relod is unknown", "namespace/"+i.Namespace+": annotation lockstep.dev/reload: \"maybe\"")
}

// leftovers: a pod that was evicted, and whose place another one has taken.
func leftovers(t *testing.T, i *installation) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "evicted", Namespace: i.Own, Labels: map[string]string{"app": "lockstep"}},
		Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "lockstep", Image: "lockstep"}}},
	}
	i.own().Create(t, pod)
	i.examine(t).expect(t, "caches", "problem", "evicted is not ready", "1 of 2")
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if err := i.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	i.examine(t).expect(t, "caches", "ok", "1 of 1")
}

// asRoot: a pod whose image runs as root, and that the kubelet therefore doesn't start; the words are the kubelet's.
func asRoot(t *testing.T, i *installation) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "root", Namespace: i.Namespace},
		Spec:       corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	i.Create(t, pod)
	i.examine(t).expect(t, "pods", "ok")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CreateContainerConfigError", Message: `container has runAsNonRoot and image will run as root (pod: "root", container: web)`,
	}}}}
	if err := i.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	i.examine(t).expect(t, "pods", "warning", "pod/root in namespace "+i.Namespace+": container web", "set podSecurityContext and securityContext to null")
}

// TestTwins: two controllers of Lockstep watch one namespace.
func TestTwins(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.MakeDeployed(t, "twin", "--namespaces="+i.Own, "--lease-name=twin")
	apart := i.examine(t)
	apart.expect(t, "reloaders", "ok")
	apart.expect(t, "leader", "warning", "isn't a pod of deployment/lockstep") // it is a process of the test
	i.own().Patch(t, &appsv1.Deployment{}, "twin", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"lockstep","image":"lockstep","args":["controller","--namespaces=%s"]}]}}}}`, i.Namespace))
	together := i.examine(t)
	together.expect(t, "leader", "problem", "same Lease", "deployment/twin")
	i.args(t, "--lease-name=other", "--namespaces="+i.Namespace)
	i.examine(t).expect(t, "reloaders", "problem", "Lockstep runs too: deployment/twin in namespace "+i.Own)
}
