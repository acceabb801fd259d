package docs_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/registrylab"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// Where the pages say that the controller serves: the first two as kubectl forwards them, the
// third behind an Ingress.
const (
	metricsOnPages = "http://127.0.0.1:8080"
	probesOnPages  = "http://127.0.0.1:8081"
	webhookOnPages = "https://lockstep.example"
)

// surround gives the reader what the sessions of the page speak of: ports of the controller,
// a registry.
func (r *reader) surround(t *testing.T, sessions []fence) {
	t.Helper()
	speakOf := func(text string) bool {
		return slices.ContainsFunc(sessions, func(f fence) bool { return strings.Contains(f.text, text) })
	}
	for _, tool := range []string{"curl", "jq"} {
		if speakOf(tool + " ") {
			labtest.Need(t, tool)
		}
	}
	if speakOf(settings.ImagePrefix) {
		r.useRegistry(t)
	}
	if speakOf("--registry-ca ca.pem") {
		r.useSecureRegistry(t)
	}
	for onPages, variable := range map[string]string{
		metricsOnPages: "LOCKSTEP_METRICS_ADDR", probesOnPages: "LOCKSTEP_PROBE_ADDR", webhookOnPages: "LOCKSTEP_IMAGE_WEBHOOK_ADDR",
	} {
		if speakOf(onPages) {
			r.usePort(t, onPages, variable)
		}
	}
	if speakOf(webhookOnPages) {
		const secret = "of-sixteen-characters-or-more"
		r.env = append(r.env, "SECRET="+secret)
		r.settings = append(r.settings, "LOCKSTEP_IMAGE_WEBHOOK_SECRET_FILE="+file(t, "secrets", secret+"\n"))
	}
}

// usePort has the controller serve at a free port, in the place of the address of the pages.
func (r *reader) usePort(t *testing.T, onPages, variable string) {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", labtest.FreePort(t))
	r.names = append(r.names, onPages, "http://"+address)
	r.settings = append(r.settings, variable+"="+address)
}

// useRegistry gives the reader a registry with three tags of one image, those of
// docs/pictures/digest.svg, in the place of "registry.example".
func (r *reader) useRegistry(t *testing.T) {
	t.Helper()
	registry := testkit.StartRegistry(t)
	for _, tag := range []string{"1.9", "1.10", "2.0"} {
		registry.Push(t, "web", tag)
	}
	r.names = append(r.names, "registry.example", registry.Address)
	r.env = append(r.env, "LOCKSTEP_CLOUD_IDENTITY=false", "LOCKSTEP_PLAIN_HTTP_REGISTRY="+registry.Address)
	r.settings = append(r.settings, "LOCKSTEP_IMAGES=true", "LOCKSTEP_IMAGE_INTERVAL=1s", "LOCKSTEP_IMAGE_PLATFORMS=linux/amd64")
}

// useSecureRegistry gives the reader a registry that wants credentials, and both what
// "docker login" would have written and the certificate that the page names.
func (r *reader) useSecureRegistry(t *testing.T) {
	t.Helper()
	registry := testkit.ServeRegistry(t, registrylab.Options{})
	for _, tag := range []string{"1.9", "1.10"} {
		if _, err := registry.PushIndex(t.Context(), "team/app", tag, tag); err != nil {
			t.Fatal(err)
		}
	}
	r.names = append(r.names, "registry.example", registry.Address)
	r.link(t, "ca.pem", testkit.Authority(t, registry))
	r.env = append(r.env, "DOCKER_CONFIG="+filepath.Dir(login(t, registry.Address)))
}

// viewer is a person in the same directory who has Kubernetes' own role "view" in the namespace
// of the page, and no other permission.
func (r *reader) viewer(t *testing.T) *reader {
	t.Helper()
	if r.view != nil {
		return r.view
	}
	account := labtest.NewAccount(t, r.cluster, r.named("shop"))
	// Argo Rollouts adds its kinds to "view" when it is installed as its own manifests do it.
	account.Allow(t, labtest.Rule{Groups: []string{"argoproj.io"}, Resources: []string{"rollouts"}, Verbs: []string{"get", "list", "watch"}})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := r.client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	view := *r
	view.controller = nil // there is nothing to settle after a command that may only read
	view.env = append(slices.Clone(r.env), "KUBECONFIG="+account.Kubeconfig)
	r.view = &view
	return r.view
}
