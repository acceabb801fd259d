package reload_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// gallery is a stage with a registry of its own: TLS, tokens, and a proxy in front of it
// that counts and spoils.
type gallery struct {
	*stage
	registry *registrylab.Server
	flags    []string
}

// newGallery makes a stage whose namespace has the credentials of the registry in the
// pull secret "pull".
func newGallery(t testing.TB, needs ...labtest.Component) *gallery {
	t.Helper()
	return newGalleryWith(t, registrylab.Options{}, needs...)
}

// newGalleryWith does the same with a registry that has options.
func newGalleryWith(t testing.TB, o registrylab.Options, needs ...labtest.Component) *gallery {
	t.Helper()
	server := testkit.ServeRegistry(t, o)
	g := &gallery{stage: newStage(t, "", needs...), registry: server}
	g.flags = []string{"--images", "--image-interval", "1s", "--cloud-identity=false", "--registry-ca", server.Address + "=" + testkit.Authority(t, server)}
	g.make(t, g.pullSecret("pull", registrylab.User, registrylab.Password))
	return g
}

// pullSecret is what "kubectl create secret docker-registry" makes.
func (g *gallery) pullSecret(name, user, password string) string {
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Secret
metadata: {name: %s}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{%q:{"auth":%q}}}'}
`, name, g.registry.Address, auth)
}

// open starts a controller that follows images.
func (g *gallery) open(t testing.TB, flags ...string) *testkit.Controller {
	t.Helper()
	return g.run(t, append(g.flags, flags...)...)
}

// push pushes an image for two platforms and returns how a container names it by digest.
func (g *gallery) push(t testing.TB, image, label string) string {
	t.Helper()
	repository, tag, _ := strings.Cut(image, ":")
	digest, err := g.registry.PushIndex(t.Context(), repository, tag, label)
	if err != nil {
		t.Fatal(err)
	}
	return g.at(image) + "@" + digest
}

// at is an image of the registry.
func (g *gallery) at(image string) string { return g.registry.Address + "/" + image }

// wants is the annotation that asks for the image of a container.
func (g *gallery) wants(container, image string) string {
	return fmt.Sprintf("%s%s: '%s'", settings.ImagePrefix, container, g.at(image))
}

// runs is a pod specification with one container, which pulls with the pull secret.
func (g *gallery) runs(image string) string {
	return fmt.Sprintf("imagePullSecrets: [{name: pull}], containers: [{name: app, image: '%s'}]", g.at(image))
}

// image is what a container of a workload runs.
func (g *gallery) image(t testing.TB, ref, container string) string {
	t.Helper()
	o := g.read(t, ref)
	path := []string{"spec", "template", "spec"}
	if o.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	for _, list := range []string{"containers", "initContainers"} {
		all, _, _ := unstructured.NestedSlice(o.Object, append(path, list)...)
		for _, c := range all {
			if fields, ok := c.(map[string]any); ok && fields["name"] == container {
				text, _ := fields["image"].(string)
				return text
			}
		}
	}
	return ""
}

// awaitImage waits until a container runs an image.
func (g *gallery) awaitImage(t testing.TB, ref, container, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := g.image(t, ref, container)
		return got == want, fmt.Sprintf("container %s of %s runs %s, want %s; events %q", container, ref, got, want, g.Events(t, strings.Split(ref, "/")[1]))
	})
}

// checkImage fails when the Deployment web does not run an image, after everything that was done
// before has been decided.
func (g *gallery) checkImage(t testing.TB, why, want string) {
	t.Helper()
	g.pass(t)
	if got := g.image(t, web, "app"); got != want {
		t.Errorf("%s: it runs %s, want %s", why, got, want)
	}
}

// awaitPolls waits until the registry was asked for digests so often since.
func (g *gallery) awaitPolls(t testing.TB, polls int) {
	t.Helper()
	count := 0
	g.registry.Counts()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		count += g.registry.Counts()["head"]
		return count >= polls, fmt.Sprintf("the registry was asked %d times, want %d", count, polls)
	})
}
