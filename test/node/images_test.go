package node_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// imagesTakeThePlaceOfOthers pushes the images of a release to a registry with TLS and
// credentials. From there the node pulls them for the manifests of the programs that they
// replace, in which only the image is another one. What is taken over and what is added is
// said in testdata/seeds; the pods of k8s-sidecar and configmap-reload are the test's own.
func imagesTakeThePlaceOfOthers(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	stdout, stderr, code := pushFrom(t, cluster, labtest.RegistryPassword, labtest.Command{
		Path: labtest.Binary(t, "./test/node/hostpush"),
		Args: []string{
			cluster.SecureRegistry() + "/team/lockstep", testTag,
			labtest.Binary(t, "./cmd/lockstep"), labtest.Binary(t, "./cmd/lockstep-sync"),
		},
	})
	if code != 0 {
		t.Fatalf("hostpush ends with %d: %s", code, stderr)
	}
	images := referencesIn(stdout, cluster.SecureRegistry()+"/team")
	for name, play := range map[string]func(*testing.T, *testkit.World, string){
		"kubernetes-reloader":     seedOfKubernetesReloader,
		"configmap-attacher":      seedOfConfigmapAttacher,
		"kube-image-deployer":     seedOfKubeImageDeployer,
		"kube-image-deployer-cli": digestIsPrinted,
		"reloader":                seedsOfReloader,
		"config-controller":       seedOfConfigController,
		"k8s-sidecar":             k8sSidecarFindsByLabel,
		"configmap-reload":        configmapReloadTellsOfAMount,
		"sync":                    credentialsAreReadable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference, found := images["lockstep-"+name]
			if !found {
				t.Fatalf("no such image was pushed: %v", images)
			}
			play(t, testkit.NewWorldOn(t, cluster), reference)
		})
	}
}

// pushedByMake pushes as a user does, with "make push", which compiles for every platform.
// A pod runs one of the images.
func pushedByMake(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	labtest.In(t, labtest.TierRelease)
	tool, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	const repository = "/made/lockstep"
	push := labtest.Command{
		Path: tool, Args: []string{"push", "IMAGE=" + cluster.SecureRegistry() + repository, "VERSION=" + testTag, "OUT=" + t.TempDir() + "/images"},
		// This test may be started by make, whose settings are not for another one.
		Env: []string{"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL="},
	}
	if _, stderr, code := pushFrom(t, cluster, "wrong", push); code == 0 || !strings.Contains(stderr, "refuses the credentials") {
		t.Fatalf("with a wrong password make ends with %d: %s", code, stderr)
	}
	stdout, stderr, code := pushFrom(t, cluster, labtest.RegistryPassword, push)
	if code != 0 {
		t.Fatalf("make push ends with %d: %s", code, stderr)
	}
	images := referencesIn(stdout, cluster.SecureRegistry()+"/made")
	_, digest, _ := strings.Cut(images["lockstep"], "@")
	if !strings.Contains(stdout, "--set image.repository="+cluster.SecureRegistry()+repository+",image.digest="+digest+"\n") {
		t.Errorf("make push does not print how to install the controller:\n%s", stdout)
	}
	credentialsAreReadable(t, testkit.NewWorldOn(t, cluster), images["lockstep-sync"])
}

// testTag is the tag of the images.
const testTag = "v0.0.0-test"

// pushFrom runs a command that pushes, in the directory of the repository and with a password
// for the registry.
func pushFrom(t *testing.T, cluster *labtest.Cluster, password string, push labtest.Command) (stdout, stderr string, code int) {
	t.Helper()
	login := t.TempDir()
	if err := cluster.RegistryLogin(login, labtest.RegistryUser, password); err != nil {
		t.Fatal(err)
	}
	push.Dir = "../.."
	push.Env = append(push.Env, "DOCKER_CONFIG="+login, "SSL_CERT_FILE="+cluster.Authority())
	running := labtest.StartCommand(t, push)
	code = running.ExitCode(t, 20*time.Minute)
	return running.Stdout(), running.Stderr(), code
}

// referencesIn finds the references that were printed, by the names of the images.
func referencesIn(stdout, dir string) map[string]string {
	images := map[string]string{}
	printed := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(dir) + `/(\S+):` + regexp.QuoteMeta(testTag) + `@sha256:[0-9a-f]{64}$`)
	for _, match := range printed.FindAllStringSubmatch(stdout, -1) {
		images[match[1]] = match[0]
	}
	return images
}

// seed reads a predecessor's manifest with one image replaced, and with what the user
// fills in.
func seed(t *testing.T, name, oldImage, image string, fill ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "image: "+oldImage+"\n"); n != 1 {
		t.Fatalf("%s has the image %s %d times", name, oldImage, n)
	}
	replaced := strings.Replace(string(text), "image: "+oldImage+"\n", "image: "+image+"\n", 1)
	return strings.NewReplacer(fill...).Replace(replaced)
}

// wantPulled: the pods run what was pushed, not something that the node had. What a
// container does can be seen before the kubelet has reported it.
func wantPulled(t *testing.T, w *testkit.World, namespace, image string) {
	t.Helper()
	registry, _, _ := strings.Cut(image, "/")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		list := &corev1.PodList{}
		if err := w.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		for _, p := range list.Items {
			for _, c := range p.Status.ContainerStatuses {
				if strings.HasPrefix(c.ImageID, registry+"/") {
					return true, ""
				}
			}
		}
		return false, fmt.Sprintf("no container in %s runs an image that came from %s", namespace, registry)
	})
}

func seedOfKubernetesReloader(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	w.Create(t, config("hello", "one"), application(map[string]string{"reloader.k8s.collaborne.com/configmap": "app"}))
	awaitOutput(t, w, "env hello")
	for _, o := range helmtest.Objects(t, seed(t, "kubernetes-reloader", "Collaborne/kubernetes-reloader:latest", image, "NAMESPACE", w.Namespace)) {
		w.Create(t, o)
	}
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		state := &corev1.ConfigMap{}
		w.Get(t, "reloader-state", state)
		return len(state.Data) > 0, "reloader-state has no entries; " + everyState(t, w)
	})
	change(t, w, "bonjour", "two")
	awaitOutput(t, w, "env bonjour", "file two")
	wantPulled(t, w, w.Namespace, image)
}

func seedOfConfigmapAttacher(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	w.Create(t, config("hello", "one"))
	template := application(nil).Spec.Template
	pod := map[string]any{}
	text, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	rollout := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "app"},
		"spec": map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "app"}},
			"strategy": map[string]any{"canary": map[string]any{}}, "template": pod,
		},
	}}
	w.Create(t, rollout)
	for _, o := range helmtest.Objects(t, seed(t, "configmap-attacher", "quay.io/liorfranko/configmap-attacher:1.0.1", image,
		"<Rollout Name>", "app", "<Namespace>", w.Namespace, "<Configmap name>", "app")) {
		w.Create(t, o)
	}
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		attached := &corev1.ConfigMap{}
		w.Get(t, "app", attached)
		owned := slices.ContainsFunc(attached.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == "ReplicaSet" && strings.HasPrefix(o.Name, "app-") && o.Controller != nil && *o.Controller
		})
		return owned, fmt.Sprintf("the ConfigMap belongs to %v", attached.OwnerReferences)
	})
	wantPulled(t, w, "kube-system", image)
}

// readConfigMaps lets the pods of a namespace's default account read its ConfigMaps.
func readConfigMaps(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Create(t,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: w.Namespace}},
		})
}

// run creates a pod. Its containers share an empty directory where they mount "shared".
func run(t *testing.T, w *testkit.World, spec corev1.PodSpec) {
	t.Helper()
	spec.TerminationGracePeriodSeconds = new(int64(3))
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "shared", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	w.Create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: spec})
}

func shared(path string) []corev1.VolumeMount {
	return []corev1.VolumeMount{{Name: "shared", MountPath: path}}
}

// reader is a container that prints a file of the shared directory whenever it changes.
func reader(file string) corev1.Container {
	return corev1.Container{
		Name: "reader", Image: showImage, ImagePullPolicy: corev1.PullNever,
		Command: []string{"/lab-node", "show", "NOTHING", "/shared/" + file}, VolumeMounts: shared("/shared"),
	}
}

// seedOfConfigController adds to the excerpt in the documentation what it leaves out:
// the shared directory, and an application that reads its file there.
func seedOfConfigController(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	readConfigMaps(t, w)
	w.Create(t, testkit.ConfigMap("prometheus", "prometheus.yml", "one"))
	var spec corev1.PodSpec
	text := seed(t, "k8s-config-controller", "atombender/k8s-config-controller:", image, "production", w.Namespace)
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	application, agent := &spec.Containers[0], &spec.Containers[1]
	useLabImages(spec.Containers[:1])
	application.Args, application.VolumeMounts = []string{"--config.file=/mnt/config/prometheus.yml"}, shared("/mnt/config")
	agent.VolumeMounts = shared("/mnt/config")
	run(t, w, spec)
	awaitLog(t, w, "prometheus", "reloaded with one")
	w.SetConfig(t, "prometheus", "prometheus.yml", "two")
	awaitLog(t, w, "prometheus", "reloaded with two")
	wantPulled(t, w, w.Namespace, image)
}

// seedOfConfigControllerSubprocess plays the documentation's other excerpt, with an image as its
// user builds it; see loadSync.
func seedOfConfigControllerSubprocess(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	w := testkit.NewWorldOn(t, cluster)
	readConfigMaps(t, w)
	w.Create(t, testkit.ConfigMap("postgresql", "postgresql.conf", "one"))
	var spec corev1.PodSpec
	text := seed(t, "k8s-config-controller-subprocess", "my-postgresql-image", "my-postgresql-image",
		"production", w.Namespace, "command: /srv/config-controller", "command: [/srv/config-controller]")
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	useLabImages(spec.Containers)
	run(t, w, spec)
	awaitLog(t, w, "postgresql", "started with one")
	w.SetConfig(t, "postgresql", "postgresql.conf", "two")
	awaitLog(t, w, "postgresql", "reloaded with two")
}

func k8sSidecarFindsByLabel(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	readConfigMaps(t, w)
	dashboard := testkit.ConfigMap("dashboard", "a.json", "one")
	dashboard.Labels = map[string]string{"grafana_dashboard": "1"}
	w.Create(t, dashboard)
	run(t, w, corev1.PodSpec{Containers: []corev1.Container{reader("a.json"), {
		Name: "sidecar", Image: image, VolumeMounts: shared("/tmp/dashboards"),
		Env: []corev1.EnvVar{{Name: "LABEL", Value: "grafana_dashboard"}, {Name: "FOLDER", Value: "/tmp/dashboards"}},
	}}})
	awaitLog(t, w, "reader", "file one")
	w.SetConfig(t, "dashboard", "a.json", "two")
	awaitLog(t, w, "reader", "file two")
	wantPulled(t, w, w.Namespace, image)
}

func configmapReloadTellsOfAMount(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	w.Create(t, testkit.ConfigMap("prometheus", "prometheus.yml", "one"))
	mounted := []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config"}}
	run(t, w, corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "prometheus", Image: "lab.local/prometheus:1", ImagePullPolicy: corev1.PullNever, Args: []string{"--config.file=/etc/config/prometheus.yml"}, VolumeMounts: mounted},
			{Name: "reload", Image: image, Args: []string{"--volume-dir=/etc/config", "--webhook-url=http://127.0.0.1:9090/-/reload"}, VolumeMounts: mounted},
		},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "prometheus"}},
		}}},
	})
	awaitLog(t, w, "prometheus", "started with one")
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) { return ready(pod(t, w)), state(t, w) })
	w.SetConfig(t, "prometheus", "prometheus.yml", "two")
	// The kubelet looks at a pod's volumes when the pod changes, and may hear of that before
	// it hears of the ConfigMap.
	changes, last := 0, time.Time{}
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		if time.Since(last) > 5*time.Second {
			changes, last = changes+1, time.Now()
			w.Patch(t, &corev1.Pod{}, "app", fmt.Sprintf(`{"metadata":{"annotations":{"look":"%d"}}}`, changes))
		}
		log := logOf(t, w, "prometheus")
		return containsLines(log, []string{"reloaded with two"}), fmt.Sprintf("after %d changes of the pod the application has written\n%s\n%s", changes, log, state(t, w))
	})
	wantPulled(t, w, w.Namespace, image)
}

// credentialsAreReadable: what the originals, as root, read below /root, the user of
// these images reads too. The agent copies it to where it can be seen.
func credentialsAreReadable(t *testing.T, w *testkit.World, image string) {
	t.Helper()
	w.Create(t, testkit.Secret("registry", ".dockerconfigjson", `{"auths":{}}`))
	run(t, w, corev1.PodSpec{
		Containers: []corev1.Container{reader("config.json"), {
			Name: "agent", Image: image, Args: []string{"--directory=/root/.docker", "--root=/shared"},
			VolumeMounts: append(shared("/shared"), corev1.VolumeMount{
				Name: "registry", MountPath: "/root/.docker/config.json", SubPath: ".dockerconfigjson",
			}),
			SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true)},
		}},
		Volumes: []corev1.Volume{{Name: "registry", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "registry"}}}},
	})
	awaitLog(t, w, "reader", `file {"auths":{}}`)
}

// everyState is what there is to know of all pods of a namespace.
func everyState(t *testing.T, w *testkit.World) string {
	t.Helper()
	text := state(t, w)
	for _, p := range pods(t, w) {
		log, err := logsOf(t, w, p.Name, &corev1.PodLogOptions{})
		text += fmt.Sprintf("\n%s wrote %q (%v)", p.Name, log, err)
	}
	return text
}
