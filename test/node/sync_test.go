package node_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// loadSync gives the node the agent, the applications of examples/sync, and the image of
// seedOfConfigControllerSubprocess.
func loadSync(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	agent, standin := labtest.Binary(t, "./cmd/lockstep-sync"), labtest.Binary(t, "./test/node/standin")
	load(t, cluster, image.Image{
		Name: "lab.local/lockstep-sync:1", Files: map[string]string{"/lockstep-sync": agent}, Entrypoint: []string{"/lockstep-sync"},
	})
	for _, name := range []string{"prometheus", "nginx"} {
		load(t, cluster, image.Image{
			Name: "lab.local/" + name + ":1", Files: map[string]string{"/" + name: standin}, Entrypoint: []string{"/" + name},
		})
	}
	// As users of k8s-config-controller build it: the program is copied to a path of their own.
	load(t, cluster, image.Image{
		Name: "lab.local/my-postgresql-image:1", Files: map[string]string{"/srv/config-controller": agent, "/usr/lib/postgresql/9.3/bin/postgres": standin},
	})
}

// failedReloadRestartsTheApplication plays examples/sync/prometheus.yaml: the
// agent is a native sidecar with the token of the pod's account, which may read
// one ConfigMap. The application starts only when its files are there, is told of
// a change, refuses another, and is restarted by the kubelet, because its own
// liveness probe asks the agent. The agent goes on all the while.
func failedReloadRestartsTheApplication(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	configMap := applySync(t, w, "../../examples/sync/prometheus.yaml", func(pod *corev1.PodSpec) {
		agent, app := &pod.InitContainers[0], &pod.Containers[0]
		// Without the roll-back, which would fix it before the kubelet has to; and
		// sooner than in life, with more time for the agent to ask a restarted
		// application than the probe gives.
		agent.Args = slices.DeleteFunc(agent.Args, func(arg string) bool { return arg == "--roll-back" })
		agent.Args = append(agent.Args, "--wait-for-sources", "--max-failures=2", "--retry=100ms", "--max-retry=1s")
		app.LivenessProbe.PeriodSeconds, app.LivenessProbe.FailureThreshold = 1, 30
		// The probes that aren't the story wait for a slow machine, and not for a fast one.
		agent.StartupProbe.FailureThreshold, app.ReadinessProbe.PeriodSeconds = 600, 1
	})
	awaitEvent(t, w, "Startup probe failed")
	if p := pod(t, w); p.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("the application is not waiting for its files: %+v", p.Status.ContainerStatuses[0].State)
	}

	w.Create(t, configMap)
	awaitLog(t, w, "prometheus", "user 65534 parent 0 root read-only capabilities none", "started with global: {scrape_interval: 30s}")

	setFile(t, w, configMap, "global: {scrape_interval: 20s}")
	awaitLog(t, w, "prometheus", "reloaded with global: {scrape_interval: 20s}")
	wantRestarts(t, w, map[string]int32{"config": 0, "prometheus": 0})

	const refused = "global: {scrape_interval: 10s} # at start"
	setFile(t, w, configMap, refused)
	awaitLog(t, w, "prometheus", "started with "+refused)
	// The agent asks the restarted application as well, and is content.
	awaitLog(t, w, "prometheus", "reloaded with "+refused)
	// The kubelet reports later than the log: until it does, the pod looks as it did
	// before. An agent that is late to ask the restarted application has it restarted again.
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		p := pod(t, w)
		restarts := restartsOf(p)
		return ready(p) && restarts["config"] == 0 && restarts["prometheus"] >= 1,
			fmt.Sprintf("restarts are %v, want some of the application and none of the agent, and a ready pod", restarts)
	})
}

// agentIsTheFirstProcess plays examples/sync/nginx.yaml: an init container brings
// the agent into a container whose image does not have it, and there it is the
// application's parent.
func agentIsTheFirstProcess(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	configMap := applySync(t, w, "../../examples/sync/nginx.yaml", func(pod *corev1.PodSpec) {
		app := &pod.Containers[0]
		app.Args = slices.Insert(app.Args, 0, "--wait-for-sources")
	})
	w.Create(t, configMap)
	awaitLog(t, w, "nginx", "user 101 parent 1 root read-only capabilities none", "started with hello")

	good := configMap.Data["nginx.conf"]
	setFile(t, w, configMap, strings.Replace(good, "hello", "bonjour", 1))
	awaitLog(t, w, "nginx", "reloaded with bonjour")

	// What the checker refuses never reaches the application.
	setFile(t, w, configMap, "nonsense")
	awaitLogPart(t, w, "nginx", `msg="refused: run nginx: exit status 1"`)
	setFile(t, w, configMap, strings.Replace(good, "hello", "hola", 1))
	awaitLog(t, w, "nginx", "reloaded with hola")
	if log := logOf(t, w, "nginx"); strings.Contains(log, "\nrefused") {
		t.Errorf("the application was told of what the checker refused:\n%s", log)
	}
	wantRestarts(t, w, map[string]int32{"install": 0, "nginx": 0})
}

// applySync creates the objects of an example, with images of the lab and as
// edited, except its ConfigMap, which it returns.
func applySync(t *testing.T, w *testkit.World, file string, edit func(*corev1.PodSpec)) *corev1.ConfigMap {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	configMap := &corev1.ConfigMap{}
	for _, o := range helmtest.Objects(t, string(text)) {
		switch o.GetKind() {
		case "ConfigMap":
			convert(t, o, configMap)
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
	return configMap
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true); err != nil {
		t.Fatal(err)
	}
}

// useLabImages takes "quay.io/prometheus/prometheus:latest" for
// "lab.local/prometheus:1", which no registry has to serve.
func useLabImages(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		name, _, _ := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
		c.Image, c.ImagePullPolicy = "lab.local/"+name+":1", corev1.PullNever
	}
}

// setFile gives the only file of a ConfigMap another content.
func setFile(t *testing.T, w *testkit.World, configMap *corev1.ConfigMap, content string) {
	t.Helper()
	for key := range configMap.Data {
		w.SetConfig(t, configMap.Name, key, content)
	}
}

// logOf is what a container of the only pod has written since its last start, and
// empty while there is none.
func logOf(t *testing.T, w *testkit.World, container string) string {
	t.Helper()
	all := pods(t, w)
	if len(all) != 1 {
		return ""
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	logs := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(w.Namespace)
	text, err := logs.GetLogs(all[0].Name, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func awaitLog(t *testing.T, w *testkit.World, container string, lines ...string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		log := logOf(t, w, container)
		return containsLines(log, lines), fmt.Sprintf("container %s has not written %q but\n%s\n%s", container, lines, log, state(t, w))
	})
}

func awaitLogPart(t *testing.T, w *testkit.World, container, part string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		log := logOf(t, w, container)
		return strings.Contains(log, part), fmt.Sprintf("container %s has not written %q but\n%s", container, part, log)
	})
}

// awaitEvent waits for an event of the namespace with a text in its note.
func awaitEvent(t *testing.T, w *testkit.World, text string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		list := &eventsv1.EventList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			return false, err.Error()
		}
		found := slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return strings.Contains(e.Note, text) })
		return found, fmt.Sprintf("no event says %q\n%s", text, state(t, w))
	})
}

// state is what there is to know of the pods when something did not happen.
func state(t *testing.T, w *testkit.World) string {
	t.Helper()
	var all []string
	for _, p := range pods(t, w) {
		all = append(all, fmt.Sprintf("%s is %s", p.Name, p.Status.Phase))
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			all = append(all, fmt.Sprintf("  %s: restarts %d, %+v", c.Name, c.RestartCount, c.State))
		}
	}
	return strings.Join(all, "\n")
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// wantRestarts compares how often each container of the only pod was restarted.
func wantRestarts(t *testing.T, w *testkit.World, want map[string]int32) {
	t.Helper()
	got := restartsOf(pod(t, w))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("restarts are %v, want %v", got, want)
	}
}

func restartsOf(p corev1.Pod) map[string]int32 {
	restarts := map[string]int32{}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		restarts[c.Name] = c.RestartCount
	}
	return restarts
}
