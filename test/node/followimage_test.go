package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// pushEndsInAPod: a pushed image ends in a pod that runs it, by its digest. One that does
// not start ends with the previous one running, and is quarantined.
func pushEndsInAPod(t *testing.T, cluster *labtest.Cluster) {
	t.Helper()
	tag := cluster.SecureRegistry() + "/followed/show:latest"
	push := func(user string, entrypoint ...string) string {
		t.Helper()
		image := showOn(cluster)
		image.Name, image.User = tag, user
		if len(entrypoint) > 0 {
			image.Entrypoint = entrypoint
		}
		digest, err := cluster.PushSecureImage(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first := push("65501")
	login := t.TempDir()
	if err := cluster.RegistryLogin(login, labtest.RegistryUser, labtest.RegistryPassword); err != nil {
		t.Fatal(err)
	}
	credentials, err := os.ReadFile(filepath.Join(login, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := testkit.NewWorldOn(t, cluster)
	pull := testkit.Secret("pull", corev1.DockerConfigJsonKey, string(credentials))
	pull.Type = corev1.SecretTypeDockerConfigJson
	app := application(map[string]string{settings.ImagePrefix + "app": tag})
	pod := &app.Spec.Template.Spec
	pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	pod.Containers[0].Image, pod.Containers[0].ImagePullPolicy = tag, corev1.PullIfNotPresent
	w.Create(t, pull, config("hello", "one"), app)
	w.StartReady(t, "--quiet="+quiet.String(), "--images", "--image-interval=1s", "--cloud-identity=false", "--registry-ca="+cluster.SecureRegistry()+"="+cluster.Authority())
	awaitRunning(t, w, first)
	w.AwaitRecord(t, "app", "ok=latest@"+strings.TrimPrefix(first, "sha256:"))

	second := push("65502")
	awaitRunning(t, w, second)
	awaitOutput(t, w, "env hello", "file one")
	w.AwaitRecord(t, "app", "ok=latest@"+strings.TrimPrefix(second, "sha256:"))

	// Only the one that can't start is given a short time to start.
	w.Patch(t, &appsv1.Deployment{}, "app", `{"spec":{"progressDeadlineSeconds":2}}`)
	broken := push("65503", "/no-such-program")
	w.AwaitEvent(t, "app", "Warning PutBack", "quarantined", strings.TrimPrefix(broken, "sha256:")[:10])
	awaitRunning(t, w, second)
	w.AwaitEvent(t, "app", "Warning Quarantined", "not rolled out")
	w.AwaitRecord(t, "app", "bad="+strings.TrimPrefix(broken, "sha256:")[:20])

	w.Patch(t, &appsv1.Deployment{}, "app", `{"spec":{"progressDeadlineSeconds":null}}`)
	awaitRunning(t, w, push("65504"))
}

// awaitRunning waits until the application's only pod is ready and runs the digest.
func awaitRunning(t *testing.T, w *testkit.World, digest string) {
	t.Helper()
	labtest.Eventually(t, 3*testkit.Patience, func() (bool, string) {
		all := pods(t, w)
		if len(all) != 1 || !ready(all[0]) {
			return false, fmt.Sprintf("%d pods; %s", len(all), everyState(t, w))
		}
		status := all[0].Status.ContainerStatuses[0]
		image := all[0].Spec.Containers[0].Image
		return strings.HasSuffix(status.ImageID, digest) && strings.HasSuffix(image, "@"+digest), fmt.Sprintf("it runs %s as %s, want %s", image, status.ImageID, digest)
	})
}
