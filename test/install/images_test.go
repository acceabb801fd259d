package examples_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
)

// pulling has a Deployment whose pods pull with the secret of their service account, and a
// CronJob. The places are for the pull secret and the image.
const pulling = `
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: pull}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '%[1]s'}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: puller}
imagePullSecrets: [{name: pull}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: pulling, annotations: {image.lockstep.dev/app: '%[2]s'}}
spec:
  replicas: 0
  selector: {matchLabels: {app: pulling}}
  template:
    metadata: {labels: {app: pulling}}
    spec: {serviceAccountName: puller, containers: [{name: app, image: '%[2]s'}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: shop, name: pulling, annotations: {image.lockstep.dev/app: '%[2]s'}}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, serviceAccountName: puller, containers: [{name: app, image: '%[2]s'}]}}}}
`

// TestImagesNeedExactlyTheRightsInComments: with the rules for images that controller.yaml
// has in comments a private image is followed, and each of them is used.
func TestImagesNeedExactlyTheRightsInComments(t *testing.T) {
	t.Parallel()
	server, err := registrylab.Start(t.Context(), registrylab.Options{Folder: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := server.PushIndex(t.Context(), "app", "1", "one"); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, server.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	text := uncomment(t, slurp(t, "controller.yaml"), "# For --images (image.lockstep.dev/CONTAINER")
	const arguments = "args: [controller, "
	if !strings.Contains(text, arguments) {
		t.Fatalf("controller.yaml has no %q", arguments)
	}
	text = strings.Replace(text, arguments, arguments+"--images, --cloud-identity=false, '--registry-ca="+server.Address+"="+authority+"', ", 1)
	usesWhatItHas(t, text, func(admin client.Client) {
		auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
		install(t, admin, fmt.Sprintf(pulling, fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, server.Address, auth), server.Address+"/app:1"))
		awaitPinned(t, admin, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "spec", "template")
		awaitPinned(t, admin, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "spec", "jobTemplate", "spec", "template")
	})
}

// awaitPinned waits until the pod template of the workload names a digest.
func awaitPinned(t *testing.T, admin client.Client, kind schema.GroupVersionKind, template ...string) {
	t.Helper()
	labtest.Eventually(t, time.Minute, func() (bool, string) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "pulling"}, o); err != nil {
			return false, err.Error()
		}
		containers, _, err := unstructured.NestedSlice(o.Object, append(template, "spec", "containers")...)
		text := fmt.Sprint(containers, err)
		return strings.Contains(text, "@sha256:"), kind.Kind + " has " + text
	})
}
