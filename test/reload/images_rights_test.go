package reload_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestImagesWithoutNodes: a controller that may not list nodes follows images all the
// same, with the pull secrets of a service account, and shows what it costs.
func TestImagesWithoutNodes(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.Patch(t, &corev1.ServiceAccount{}, "default", `{"imagePullSecrets":[{"name":"pull"}]}`)
	g.make(t, deployment("web", g.wants("app", "app:latest"), "containers: [{name: app, image: '"+g.at("app:latest")+"'}]"))
	account := labtest.NewAccount(t, g.Cluster, g.Own)
	account.AllowEverywhere(t, slices.Concat(testkit.FollowRules(), testkit.SecretRules(), []labtest.Rule{
		{Groups: []string{""}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: []string{"get"}},
	})...)
	account.Allow(t, slices.Concat(testkit.OwnRules(), testkit.RecordRules())...)
	g.AwaitRecordPermission(t, account, true)
	testkit.AwaitListing(t, account, true, &appsv1.DeploymentList{}, client.InNamespace(g.Namespace))
	address := freeAddress(t)
	c := inprocess.StartControllerAs(t, g.World, account.Kubeconfig, append(g.flags, "--quiet", testkit.Quiet, "--metrics-addr", address)...)
	c.AwaitReady(t, true)
	g.awaitImage(t, web, "app", first)
	if n := strings.Count(c.Stderr(), "cannot list nodes"); n != 1 {
		t.Errorf("the log tells %d times that nodes cannot be listed, want once:\n%s", n, c.Stderr())
	}
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		text := scrape(t, address)
		for _, want := range []string{
			`lockstep_registry_requests_total{code="200",kind="head",registry="` + g.registry.Address + `"}`,
			`lockstep_image_resolutions_total{registry="` + g.registry.Address + `",result="success"}`,
			`lockstep_registry_last_success_timestamp_seconds{registry="` + g.registry.Address + `"} 1.`,
			`lockstep_inputs_given_total{input="Image",kind="Deployment",namespace="` + g.Namespace + `"} 1`,
		} {
			if !strings.Contains(text, want) {
				return false, "the metrics do not show " + want
			}
		}
		return true, ""
	})
}

// TestImageForNoNode: an image that no node can run is not taken.
func TestImageForNoNode(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	first := g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest"), g.runs("app:latest")))
	g.open(t, "--image-platforms", "linux/amd64,linux/arm64")
	g.awaitImage(t, web, "app", first)
	if _, err := g.registry.PushImage(t.Context(), "app", "latest", "only amd64"); err != nil {
		t.Fatal(err)
	}
	g.AwaitEvent(t, "web", "Warning Unresolved", "supports linux/amd64, but not linux/arm64")
	g.checkImage(t, "not for every platform", first)
}

// TestImageForOnePlatform: the image of one platform is pinned instead of the index.
func TestImageForOnePlatform(t *testing.T) {
	t.Parallel()
	g := newGallery(t)
	index := g.push(t, "app:latest", "one")
	g.make(t, deployment("web", g.wants("app", "app:latest")+", platform.lockstep.dev/app: linux/arm64", g.runs("app:latest")))
	g.open(t)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		image := g.image(t, web, "app")
		return strings.HasPrefix(image, g.at("app:latest@sha256:")) && image != index, "it runs " + image
	})
}
