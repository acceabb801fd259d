package node_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/helmtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// deployer is the name of everything in the manifests of kube-image-deployer.
const deployer = "kube-image-deployer"

// seedOfKubeImageDeployer adds two files to the original's manifest: .env in its working directory,
// and the CA of the lab. Images that are pushed run in a pod. Then the example of the migration page
// takes the place of the installation, and no second one appears.
func seedOfKubeImageDeployer(t *testing.T, w *testkit.World, reference string) {
	t.Helper()
	repository, push := followedRepository(t, w)
	app := application(map[string]string{deployer + "/app": repository + ":latest"})
	app.Labels = map[string]string{deployer: "true"}
	app.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	first := push("65511")
	w.Create(t, config("hello", "one"), app)

	there := &testkit.World{Cluster: w.Cluster, Client: w.Client, Namespace: deployer}
	files := labFiles(t, w, "CONTROLLER_WATCH_NAMESPACE="+w.Namespace+"\nIMAGE_CHECK_INTERVAL_SEC=1\nIMAGE_HASH_CACHE_TTL_SEC=0\n")
	for _, o := range helmtest.Objects(t, seed(t, deployer, "ghcr.io/pubg/kube-image-deployer:v0.1.2", reference, "CONFIG", registryConfig(w))) {
		if o.GetKind() != "StatefulSet" {
			there.Create(t, o)
			continue
		}
		set := &appsv1.StatefulSet{}
		convert(t, o, set)
		there.Create(t, files)
		addLabFiles(&set.Spec.Template.Spec)
		there.Create(t, set)
	}
	awaitLogPart(t, there, deployer, "namespace="+w.Namespace+" platform=linux/amd64 interval=1s ttl=0s")
	awaitRunning(t, w, first)
	second := push("65512")
	awaitRunning(t, w, second)
	wantPulled(t, w, deployer, reference)

	text, err := os.ReadFile("../../examples/kube-image-deployer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := strings.Replace(string(text), "registry.example/lockstep-kube-image-deployer:dev", reference, 1)
	for _, o := range helmtest.Objects(t, example) {
		if err := w.Client.Patch(t.Context(), o, client.Apply, client.FieldOwner("kubectl"), client.ForceOwnership); err != nil { //nolint:staticcheck // a manifest of any kind
			t.Fatalf("apply %s %s over the original's: %v", o.GetKind(), o.GetName(), err)
		}
	}
	awaitReplaced(t, there)
	awaitReverted(t, w, repository+"@"+second)
}

// awaitReverted writes an image by hand, and waits until the annotation is enforced.
func awaitReverted(t *testing.T, w *testkit.World, want string) {
	t.Helper()
	byHand := w.Deployment(t, "app")
	before := client.MergeFrom(byHand.DeepCopy())
	byHand.Spec.Template.Spec.Containers[0].Image = showImage
	if err := w.Client.Patch(t.Context(), byHand, before); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := w.Deployment(t, "app")
		image := now.Spec.Template.Spec.Containers[0].Image
		return now.Generation > byHand.Generation && image == want, fmt.Sprintf("generation %d, after %d by hand, has the image %s", now.Generation, byHand.Generation, image)
	})
}

// awaitReplaced waits until the pod of the only installation is the one of the example, which is
// ready when its probe says so.
func awaitReplaced(t *testing.T, there *testkit.World) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		list := &appsv1.StatefulSetList{}
		if err := there.Client.List(t.Context(), list, client.MatchingFields{"metadata.name": deployer}); err != nil {
			return false, err.Error()
		}
		if len(list.Items) != 1 {
			return false, fmt.Sprintf("%d installations", len(list.Items))
		}
		set := list.Items[0]
		done := set.Status.ObservedGeneration == set.Generation && set.Status.UpdatedReplicas == 1 && set.Status.ReadyReplicas == 1
		return done && set.Spec.Template.Spec.Containers[0].ReadinessProbe != nil, fmt.Sprintf("status %+v; %s", set.Status, everyState(t, there))
	})
}

// followedRepository is a repository as pods name it, and a function that pushes its tag latest,
// each time as another user and so with another digest, which it returns.
func followedRepository(t *testing.T, w *testkit.World) (repository string, push func(user string) string) {
	t.Helper()
	path := "/followed/" + w.Namespace
	return w.Cluster.SecureRegistryInPods() + path, func(user string) string {
		t.Helper()
		image := showOn(w.Cluster)
		image.Name, image.User = w.Cluster.SecureRegistry()+path+":latest", user
		digest, err := w.Cluster.PushSecureImage(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
}

// registryConfig is Docker's configuration for the lab's registry, as its users write it by hand.
func registryConfig(w *testkit.World) string {
	return fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, w.Cluster.SecureRegistryInPods(), labtest.RegistryUser, labtest.RegistryPassword)
}

// labFiles has the file .env and the CA of the lab.
func labFiles(t *testing.T, w *testkit.World, env string) *corev1.Secret {
	t.Helper()
	authority, err := os.ReadFile(w.Cluster.Authority())
	if err != nil {
		t.Fatal(err)
	}
	files := testkit.Secret("files", ".env", env)
	files.StringData["lab.pem"] = string(authority)
	return files
}

// addLabFiles mounts them in the first container.
func addLabFiles(spec *corev1.PodSpec) {
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "files", MountPath: "/app/.env", SubPath: ".env"},
		corev1.VolumeMount{Name: "files", MountPath: "/etc/ssl/certs/lab.pem", SubPath: "lab.pem"})
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "files"}}})
}

// digestIsPrinted: the original's command ran where a user wanted it, so its pod is the test's own.
func digestIsPrinted(t *testing.T, w *testkit.World, reference string) {
	t.Helper()
	repository, push := followedRepository(t, w)
	digest := push("65521")
	w.Create(t, labFiles(t, w, ""), testkit.Secret("registry", "config.json", registryConfig(w)))
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "cli", Image: reference, Args: []string{"--image", repository, "--tag", "latest"},
			VolumeMounts: []corev1.VolumeMount{{Name: "registry", MountPath: "/root/.docker"}},
		}},
		Volumes: []corev1.Volume{{Name: "registry", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "registry"}}}},
	}
	addLabFiles(&spec)
	run(t, w, spec)
	awaitLog(t, w, "cli", repository+"@"+digest)
	if log := logOf(t, w, "cli"); log != repository+"@"+digest+"\n" {
		t.Errorf("it prints more than the digest: %q", log)
	}
	wantPulled(t, w, w.Namespace, reference)
}
