package ask_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// gallery is a registry with TLS and tokens, and the flags by which a controller follows it.
type gallery struct {
	server *registrylab.Server
	flags  []string
}

// openGallery gives the stage a registry, and its namespace the credentials in the pull
// secret "pull".
func openGallery(t testing.TB, s *stage) {
	t.Helper()
	server := testkit.ServeRegistry(t, registrylab.Options{})
	auth := base64.StdEncoding.EncodeToString([]byte(registrylab.User + ":" + registrylab.Password))
	s.make(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: pull}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{%q:{"auth":%q}}}'}
`, server.Address, auth))
	s.gallery = &gallery{server: server, flags: []string{
		"--images", "--image-interval", "1s", "--cloud-identity=false", "--registry-ca", server.Address + "=" + testkit.Authority(t, server),
	}}
}

// push pushes an image and returns how a container names it by digest.
func (s *stage) push(t testing.TB, image, label string) string {
	t.Helper()
	repository, tag, _ := strings.Cut(image, ":")
	digest, err := s.gallery.server.PushIndex(t.Context(), repository, tag, label)
	if err != nil {
		t.Fatal(err)
	}
	return s.at(image) + "@" + digest
}

// at is an image of the registry.
func (s *stage) at(image string) string { return s.gallery.server.Address + "/" + image }

// wants is the annotation that asks for an image.
func (s *stage) wants(image string) string {
	return fmt.Sprintf("%sapp: '%s'", settings.ImagePrefix, s.at(image))
}

// runs is a pod with one container.
func (s *stage) runs(image string) string {
	return fmt.Sprintf("imagePullSecrets: [{name: pull}], containers: [{name: app, image: '%s'}]", image)
}

// awaitImage waits until the container of a Deployment runs an image.
func (s *stage) awaitImage(t testing.TB, name, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		got := s.Deployment(t, name).Spec.Template.Spec.Containers[0].Image
		return got == want, fmt.Sprintf("%s runs %s, want %s; events %q", name, got, want, s.Events(t, name))
	})
}
