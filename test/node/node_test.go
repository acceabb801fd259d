// Package node_test plays stories on a real node: kubelet, containerd and runc
// run real pods, so what is checked is what an application sees.
package node_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/image"
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
	cluster := labtest.Private(t, labtest.Options{With: []labtest.Component{labtest.Node, labtest.ArgoRollouts}})
	load(t, cluster, showOn(cluster))
	load(t, cluster, image.Image{
		Name: lockstepImage, Files: map[string]string{"/lockstep": labtest.StaticBinary(t, "./cmd/lockstep")},
		Entrypoint: []string{"/lockstep"}, User: "65532",
	})
	t.Run("Reload", func(t *testing.T) { reloadReachesEnvironmentAndFiles(t, cluster) })
	t.Run("Refresh", func(t *testing.T) { refreshRestartsNothing(t, cluster) })
	t.Run("InCluster", func(t *testing.T) { controllerRunsInAPod(t, cluster) })
	loadSync(t, cluster)
	t.Run("Sidecar", func(t *testing.T) { failedReloadRestartsTheApplication(t, cluster) })
	t.Run("Revisions", func(t *testing.T) { podsKeepTheConfigurationOfTheirRevision(t, cluster) })
	t.Run("FirstProcess", func(t *testing.T) { agentIsTheFirstProcess(t, cluster) })
}

// reloadReachesEnvironmentAndFiles: an environment only changes with a new
// container, so one rollout must have happened, and no more than one.
func reloadReachesEnvironmentAndFiles(t *testing.T, cluster *labtest.Cluster) {
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto"}))
	awaitOutput(t, w, "env hello", "file one")
	w.StartReady(t, "--quiet=500ms")
	w.AwaitRecord(t, "app", "configmap/app")

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	if n := w.Revisions(t, "app"); n != 2 {
		t.Errorf("%d revisions, want the old one and one new", n)
	}
}

// refreshRestartsNothing: the mounted file changes in the running pod, far sooner
// than the kubelet's own round, which takes about a minute.
func refreshRestartsNothing(t *testing.T, cluster *labtest.Cluster) {
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(map[string]string{
		settings.Reload: "auto", settings.Strategy: string(settings.StrategyRefresh),
	}))
	awaitOutput(t, w, "file one")
	before := pod(t, w)
	w.StartReady(t, "--quiet=0s", "--pod-strategies")
	w.AwaitRecord(t, "app", "configmap/app")

	changed := time.Now()
	change(t, w, "hello", "two")
	awaitOutput(t, w, "file two")
	t.Logf("the mounted file changed %s after the ConfigMap", time.Since(changed).Round(10*time.Millisecond))
	if took := time.Since(changed); took > 30*time.Second {
		t.Errorf("the file changed only after %s: that was the kubelet's own round", took)
	}
	after := pod(t, w)
	if after.UID != before.UID || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("pod %s became %s with %d restarts", before.UID, after.UID, after.Status.ContainerStatuses[0].RestartCount)
	}
}

// controllerRunsInAPod: the manifest of examples/, its service account, its
// rights, a token that the kubelet mounts, and the API server at its service
// address.
func controllerRunsInAPod(t *testing.T, cluster *labtest.Cluster) {
	w := testkit.NewWorldOn(t, cluster)
	w.Create(t, config("hello", "one"), application(map[string]string{settings.Reload: "auto", settings.Quiet: "500ms"}))
	awaitOutput(t, w, "env hello")
	applyExample(t, w.Client, "../../examples/controller.yaml")
	awaitAvailable(t, w.Client, client.ObjectKey{Namespace: "lockstep-system", Name: "lockstep"})
	w.Own = "lockstep-system"
	w.AwaitRecord(t, "app", "configmap/app")

	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
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
	config, err := clientcmd.BuildConfigFromFlags("", w.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c := kubernetes.NewForConfigOrDie(config)
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		said := []string{}
		for _, p := range pods(t, w) {
			log, err := c.CoreV1().Pods(w.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil {
				return false, fmt.Sprintf("read the log of %s: %v", p.Name, err)
			}
			if containsLines(string(log), lines) {
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

// applyExample creates the objects of a manifest, with the image that was built.
func applyExample(t *testing.T, c client.Client, path string) {
	t.Helper()
	manifest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(manifest), "image: registry.example/lockstep:dev", "imagePullPolicy: Never\n        image: "+lockstepImage)
	if !strings.Contains(text, lockstepImage) {
		t.Fatalf("%s does not name the image that this test replaces", path)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

func awaitAvailable(t *testing.T, c client.Client, at client.ObjectKey) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		d := &appsv1.Deployment{}
		if err := c.Get(t.Context(), at, d); err != nil {
			return false, err.Error()
		}
		return d.Status.AvailableReplicas == *d.Spec.Replicas, fmt.Sprintf("%d of %d replicas of %s are available", d.Status.AvailableReplicas, *d.Spec.Replicas, at)
	})
}
