// Package node_test plays stories on a real node: kubelet, containerd and runc
// run real pods, so what is checked is what an application sees.
package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

const (
	showImage     = "lab.local/show:1"
	lockstepImage = "lab.local/lockstep:1"
)

// TestRealNode shares one node between its stories: a node takes seconds to
// start. The stories are played at the same time, each in namespaces of its own.
func TestRealNode(t *testing.T) {
	cluster := labtest.Private(t, labtest.Options{
		With: []labtest.Component{labtest.Node, labtest.ArgoRollouts, labtest.Registry, labtest.SecureRegistry},
		// Files in pods change when a pod changes, and not by themselves: what a story sees
		// is the work of Lockstep, however slow the machine is.
		KubeletConfig: "syncFrequency: 1h\n",
	})
	load(t, cluster, showOn(cluster))
	load(t, cluster, image.Image{
		Name: lockstepImage, Files: map[string]string{"/lockstep": labtest.Binary(t, "./cmd/lockstep")},
		Entrypoint: []string{"/lockstep"}, User: "65532",
	})
	loadSync(t, cluster)
	loadGrafana(t, cluster)
	for name, play := range map[string]func(*testing.T, *labtest.Cluster){
		"Reload":        reloadReachesEnvironmentAndFiles,
		"Crash":         crashStopsTheSpread,
		"CrashNoProbe":  crashWithoutProbeStopsTheSpread,
		"Immutable":     immutableSourceKeepsItsCopy,
		"Pull":          podPullsFromTheRegistry,
		"FollowImage":   pushEndsInAPod,
		"InCluster":     controllerInAPod,
		"Sidecar":       failedReloadRestartsTheApplication,
		"Grafana":       grafanaKeepsItsDashboards,
		"GrafanaNative": grafanaWithNativeSidecars,
		"Revisions":     podsKeepTheConfigurationOfTheirRevision,
		"AsRoot":        imageThatRunsAsRoot,
		"FirstProcess":  agentIsTheFirstProcess,
		"Images":        imagesTakeThePlaceOfOthers,
		"Subprocess":    seedOfConfigControllerSubprocess,
		"MakePush":      pushedByMake,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, cluster)
		})
	}
}

// reloadReachesEnvironmentAndFiles: an environment only changes with a new
// container, so each change must have made one rollout, and no more than one.
func reloadReachesEnvironmentAndFiles(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto"}))
	awaitOutput(t, w, "env hello", "file one")
	w.StartReady(t, "--quiet="+quiet.String())
	w.AwaitRecord(t, "app", "configmap/app")
	oneRolloutForEachChange(t, w)
}

// quiet is the quiet window of the reload stories.
const quiet = 500 * time.Millisecond

// oneRolloutForEachChange changes the configuration twice.
func oneRolloutForEachChange(t *testing.T, w *testkit.World) {
	t.Helper()
	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	change(t, w, "hola", "three")
	awaitOutput(t, w, "env hola", "file three")
	w.CheckRevisions(t, "app", 3, "the first one and one for each change")
}

// controllerNamespace is where the controller is installed.
const controllerNamespace = "lockstep-system"

// controllerInAPod plays stories with the controller that is installed in the cluster.
func controllerInAPod(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	installController(t, cluster)
	for name, play := range map[string]func(*testing.T, *testkit.World){
		"Reload": controllerReloadsFromAPod, "Refresh": refreshRestartsNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorldOn(t, cluster)
			w.Own = controllerNamespace
			w.Patch(t, &corev1.Namespace{}, w.Namespace, fmt.Sprintf(`{"metadata":{"labels":{%q:"here"}}}`, followed))
			play(t, w)
		})
	}
}

// followed is the label of the namespaces that the installed controller follows: in those of
// other stories a controller of their own does.
const followed = "followed"

// installController runs the controller in the cluster, as users do: Helm installs the
// chart, with its service account, the permissions that it renders, a token that the kubelet
// mounts, and the API server at its service address. Helm waits until it is ready.
func installController(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	h := helmtest.New(t, cluster.Kubeconfig())
	repository, tag, _ := strings.Cut(lockstepImage, ":")
	h.Run(t, "install", "lockstep", h.Chart("lockstep"), "--namespace", controllerNamespace, "--create-namespace", "--wait",
		"--set", "podStrategies.enabled=true,image.pullPolicy=Never,image.repository="+repository, "--set-string", "namespaceSelector="+followed+",image.tag="+tag)
}

func controllerReloadsFromAPod(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto", settings.Quiet: quiet.String()}))
	awaitOutput(t, w, "env hello")
	w.AwaitRecord(t, "app", "configmap/app")
	oneRolloutForEachChange(t, w)
}

// refreshRestartsNothing: the mounted file changes in the running pod, every time, and
// with no more permissions than the chart renders. The kubelet's own round comes in an hour.
func refreshRestartsNothing(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t, config("hello", "one"), application(map[string]string{
		settings.Reload: "auto", settings.Strategy: string(settings.StrategyRefresh), settings.Quiet: "0s",
	}))
	awaitOutput(t, w, "file one")
	before := pod(t, w)
	w.AwaitRecord(t, "app", "configmap/app")

	for _, content := range []string{"two", "three", "four"} {
		awaitRefreshed(t, w, content)
	}
	after := pod(t, w)
	if after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("pod %s became %s with %d restarts", before.UID, after.UID, after.Status.ContainerStatuses[0].RestartCount)
	}
}

// awaitRefreshed changes the ConfigMap and waits until the pod has read the change. A
// kubelet may hear of the pod before it hears of the ConfigMap, and then keeps the old file;
// each further change is another chance.
func awaitRefreshed(t *testing.T, w *testkit.World, content string) {
	t.Helper()
	changes, last := 0, time.Time{}
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		if time.Since(last) > 10*time.Second {
			changes, last = changes+1, time.Now()
			change(t, w, "hello", fmt.Sprint(content, "-", changes))
		}
		log, err := logsOf(t, w, pod(t, w).Name, &corev1.PodLogOptions{})
		return strings.Contains(log, "\nfile "+content+"-"), fmt.Sprintf("after %d changes the pod has printed %q (error %v)", changes, log, err)
	})
}

func logsOf(t *testing.T, w *testkit.World, pod string, options *corev1.PodLogOptions) (string, error) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	log, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(w.Namespace).GetLogs(pod, options).DoRaw(t.Context())
	return string(log), err
}

// showOn is the image of an application that shows its configuration.
func showOn(cluster *labtest.Cluster) image.Image {
	return image.Image{
		Name: showImage, Files: map[string]string{"/lab-node": cluster.Helper()}, Entrypoint: []string{"/lab-node", "show", "GREETING", "/config/file"},
	}
}

func load(t *testing.T, cluster *labtest.Cluster, i image.Image) {
	t.Helper()
	if err := cluster.LoadImage(t.Context(), i); err != nil {
		t.Fatal(err)
	}
}

func config(greeting, file string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: map[string]string{"greeting": greeting, "file": file}}
}

func application(annotations map[string]string) *appsv1.Deployment {
	source := corev1.LocalObjectReference{Name: "app"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "app"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(3)),
					Containers: []corev1.Container{{
						Name: "app", Image: showImage, ImagePullPolicy: corev1.PullNever,
						Env: []corev1.EnvVar{{Name: "GREETING", ValueFrom: &corev1.EnvVarSource{
							ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: source, Key: "greeting"},
						}}},
						VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/config"}},
					}},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: source},
					}}},
				},
			},
		},
	}
}

func change(t *testing.T, w *testkit.World, greeting, file string) {
	t.Helper()
	now := config(greeting, file)
	now.Namespace = w.Namespace
	if err := w.Client.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

// awaitOutput waits until a running pod of the application has printed every line.
func awaitOutput(t *testing.T, w *testkit.World, lines ...string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		said := []string{}
		for _, p := range pods(t, w) {
			log, err := logsOf(t, w, p.Name, &corev1.PodLogOptions{})
			if err != nil {
				return false, fmt.Sprintf("read the log of %s: %v", p.Name, err)
			}
			if containsLines(log, lines) {
				return true, ""
			}
			said = append(said, fmt.Sprintf("%s (%s): %q", p.Name, p.Status.Phase, log))
		}
		return false, fmt.Sprintf("no pod has printed %q; pods: %s", lines, strings.Join(said, ", "))
	})
}

func containsLines(log string, lines []string) bool {
	for _, line := range lines {
		if !strings.Contains("\n"+log, "\n"+line+"\n") {
			return false
		}
	}
	return true
}

func pods(t *testing.T, w *testkit.World) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func pod(t *testing.T, w *testkit.World) corev1.Pod {
	t.Helper()
	all := pods(t, w)
	if len(all) != 1 {
		t.Fatalf("%d pods, want one", len(all))
	}
	return all[0]
}
