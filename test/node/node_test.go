// Package node_test plays stories on a real node: kubelet, containerd and runc
// run real pods, so what is checked is what an application sees.
package node_test

import (
	"fmt"
	"slices"
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
// start, and the stories do not disturb each other.
func TestRealNode(t *testing.T) {
	if testing.Short() {
		t.Skip("-short asks for the tests without a real node")
	}
	cluster := labtest.Private(t, labtest.Options{With: []labtest.Component{labtest.Node, labtest.ArgoRollouts, labtest.Registry, labtest.SecureRegistry}})
	load(t, cluster, showOn(cluster))
	load(t, cluster, image.Image{
		Name: lockstepImage, Files: map[string]string{"/lockstep": labtest.StaticBinary(t, "./cmd/lockstep")},
		Entrypoint: []string{"/lockstep"}, User: "65532",
	})
	t.Run("Reload", func(t *testing.T) { reloadReachesEnvironmentAndFiles(t, cluster) })
	t.Run("Immutable", func(t *testing.T) { immutableSourceKeepsItsCopy(t, cluster) })
	t.Run("Pull", func(t *testing.T) { podPullsFromTheRegistry(t, cluster) })
	t.Run("FollowImage", func(t *testing.T) { pushEndsInAPod(t, cluster) })
	t.Run("InCluster", func(t *testing.T) {
		installController(t, cluster)
		t.Run("Reload", func(t *testing.T) { controllerReloadsFromAPod(t, cluster) })
		t.Run("Refresh", func(t *testing.T) { refreshRestartsNothing(t, cluster) })
	})
	loadSync(t, cluster)
	t.Run("Sidecar", func(t *testing.T) { failedReloadRestartsTheApplication(t, cluster) })
	loadGrafana(t, cluster)
	t.Run("Grafana", func(t *testing.T) { grafanaKeepsItsDashboards(t, cluster) })
	t.Run("GrafanaNative", func(t *testing.T) { grafanaWithNativeSidecars(t, cluster) })
	t.Run("Revisions", func(t *testing.T) { podsKeepTheConfigurationOfTheirRevision(t, cluster) })
	t.Run("FirstProcess", func(t *testing.T) { agentIsTheFirstProcess(t, cluster) })
	t.Run("Images", func(t *testing.T) { imagesTakeThePlaceOfOthers(t, cluster) })
}

// reloadReachesEnvironmentAndFiles: an environment only changes with a new
// container, so one rollout must have happened, and no more than one.
func reloadReachesEnvironmentAndFiles(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto"}))
	awaitOutput(t, w, "env hello", "file one")
	w.StartReady(t, "--quiet="+quiet.String())
	w.AwaitRecord(t, "app", "configmap/app")

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	onlyOneRollout(t, w)
}

// quiet is the quiet window of the reload stories.
const quiet = 500 * time.Millisecond

// onlyOneRollout looks on for several quiet windows: a second rollout would come
// after the first one's.
func onlyOneRollout(t *testing.T, w *testkit.World) {
	t.Helper()
	if n := w.Revisions(t, "app"); n != 2 {
		t.Errorf("%d revisions, want the old one and one new", n)
	}
	labtest.Never(t, 6*quiet, func() (bool, string) {
		n := w.Revisions(t, "app")
		return n > 2, fmt.Sprintf("%d revisions, want the old one and one new", n)
	})
}

// controllerNamespace is where the controller is installed.
const controllerNamespace = "lockstep-system"

// installController runs the controller in the cluster, as users do: Helm installs the
// chart, with its service account, the rights that it renders, a token that the kubelet
// mounts, and the API server at its service address. Helm waits until it is ready.
func installController(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	h := helmtest.New(t, cluster.Kubeconfig())
	repository, tag, _ := strings.Cut(lockstepImage, ":")
	h.Run(t, "install", "lockstep", h.Chart("lockstep"), "--namespace", controllerNamespace, "--create-namespace", "--wait",
		"--set", "podStrategies.enabled=true,image.pullPolicy=Never,image.repository="+repository, "--set-string", "image.tag="+tag)
}

func controllerReloadsFromAPod(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	w.Own = controllerNamespace
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto", settings.Quiet: quiet.String()}))
	awaitOutput(t, w, "env hello")
	w.AwaitRecord(t, "app", "configmap/app")

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	onlyOneRollout(t, w)
}

// refreshBound sets a refreshed file apart from one that changes in the kubelet's own
// round, which takes about a minute: then refresh would be for nothing. It is the one
// time that a test of ours asserts, and far above what is measured.
const refreshBound = 20 * time.Second

// refreshRestartsNothing: the mounted file changes in the running pod, soon, every
// time, and with no more rights than the chart renders. How soon is in the log.
func refreshRestartsNothing(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	w.Own = controllerNamespace
	w.Create(t, config("hello", "one"), application(map[string]string{
		settings.Reload: "auto", settings.Strategy: string(settings.StrategyRefresh), settings.Quiet: "0s",
	}))
	awaitOutput(t, w, "file one")
	before := pod(t, w)
	w.AwaitRecord(t, "app", "configmap/app")

	var took []time.Duration
	for _, content := range []string{"two", "three", "four", "five", "six"} {
		changed := time.Now()
		change(t, w, "hello", content)
		awaitOutput(t, w, "file "+content)
		took = append(took, saidAt(t, w, "file "+content).Sub(changed).Round(10*time.Millisecond))
	}
	t.Logf("the mounted file changed %v after the ConfigMap", took)
	if slowest := slices.Max(took); slowest > refreshBound {
		t.Errorf("a file changed %s after the ConfigMap: that is the kubelet's own round", slowest)
	}
	after := pod(t, w)
	if after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("pod %s became %s with %d restarts", before.UID, after.UID, after.Status.ContainerStatuses[0].RestartCount)
	}
}

// saidAt is when the only pod printed a line, by the clock of the container runtime,
// which is this machine's.
func saidAt(t *testing.T, w *testkit.World, line string) time.Time {
	t.Helper()
	log, err := logsOf(t, w, pod(t, w).Name, &corev1.PodLogOptions{Timestamps: true})
	if err != nil {
		t.Fatal(err)
	}
	for each := range strings.Lines(log) {
		stamp, said, _ := strings.Cut(strings.TrimSpace(each), " ")
		if said != line {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	t.Fatalf("no line %q in %q", line, log)
	return time.Time{}
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
