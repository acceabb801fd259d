package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

// TestNodesAreNotListed: where flags name the platforms, no permission to list nodes is needed.
func TestNodesAreNotListed(t *testing.T) {
	t.Parallel()
	amd64 := []v1.Platform{{OS: "linux", Architecture: "amd64"}}
	for name, c := range map[string]struct {
		images   Images
		standard string
		selects  kube.PullSettings
		want     []v1.Platform // that an index needs
		lists    bool
	}{
		"Nodes":     {images: Images{Enabled: true}, lists: true},
		"Platforms": {images: Images{Enabled: true, Platforms: amd64}, want: amd64},
		"Default":   {images: Images{Enabled: true}, standard: "linux/amd64", want: amd64},
		"Both":      {images: Images{Enabled: true, Platforms: amd64}, standard: "linux/arm64", want: amd64},
		"Selected":  {images: Images{Enabled: true}, standard: "linux/amd64", selects: kube.PullSettings{Architecture: "arm64"}},
		"NoImages":  {},
	} {
		o := &Options{Reload: true, Images: c.images, Scope: Scope{Kinds: kube.Kinds()}, Words: settings.Native{Defaults: settings.Defaults{Platform: c.standard}}}
		lists := slices.ContainsFunc(o.Needs(), func(p access.Permission) bool { return p.Resource.Resource == "nodes" })
		if lists != c.lists {
			t.Errorf("%s: lists the nodes: %t", name, lists)
		}
		fixed := c.images.fixedPlatforms(c.standard)
		if fixed == nil {
			continue
		}
		if got, known := fixed(&kube.Workload{PodTemplate: kube.PodTemplate{Pull: c.selects}}); !known || !slices.EqualFunc(got, c.want, v1.Platform.Equals) {
			t.Errorf("%s: an index needs %v, want %v", name, got, c.want)
		}
	}
}

// TestKindsThatAreOff: of a kind that is switched off nothing is asked for.
func TestKindsThatAreOff(t *testing.T) {
	t.Parallel()
	o := &Options{Reload: true, Images: Images{Enabled: true}, Scope: Scope{Kinds: []kube.Kind{kube.Deployment()}}}
	o.Revisions.Enabled = true
	for _, p := range o.Needs() {
		switch p.Resource.Resource {
		case "statefulsets", "daemonsets", "cronjobs", "rollouts", "jobs", "controllerrevisions":
			t.Errorf("it asks for %s", p)
		}
	}
}

// nothing is an API server without objects.
type nothing struct{ client.Reader }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("serviceaccounts"), key.Name)
}

// TestCredentialsOfTheController: they serve the namespaces that an administrator names. A workload of
// another one gets none, and hears which flag and which value would allow it.
func TestCredentialsOfTheController(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"auths":{"registry.example":{"username":"a","password":"hunter2"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const denied = "namespace shop isn't allowed to use the controller's credentials %s: an administrator can allow it with %s (in the chart %s)"
	noFile := fmt.Sprintf(denied, "in --docker-config", "--docker-config-namespaces", "images.dockerConfigNamespaces")
	noCloud := fmt.Sprintf(denied, "of its cloud identity", "--cloud-identity-namespaces", "images.cloudIdentityNamespaces")
	for reason, c := range map[string]struct {
		options Registries
		host    string
		found   int
		says    string
	}{
		"no namespace is named":           {Registries{DockerConfig: file}, "registry.example", 0, noFile},
		"others are named":                {Registries{DockerConfig: file, DockerConfigFor: Namespaces{"blog", "shop-2"}}, "registry.example", 0, noFile},
		"it is named":                     {Registries{DockerConfig: file, DockerConfigFor: Namespaces{"blog", "shop"}}, "registry.example", 1, ""},
		"all are named":                   {Registries{DockerConfig: file, DockerConfigFor: Namespaces{EveryNamespace}}, "registry.example", 1, ""},
		"no file":                         {Registries{}, "registry.example", 0, ""},
		"the cloud's registry":            {Registries{CloudIdentity: true, CloudIdentityFor: Namespaces{"blog"}}, "123456789012.dkr.ecr.eu-west-1.amazonaws.com", 0, noCloud},
		"a registry outside of the cloud": {Registries{CloudIdentity: true, CloudIdentityFor: Namespaces{"blog"}}, "registry.example", 0, ""},
		"no identity":                     {Registries{}, "team.azurecr.io", 0, ""},
	} {
		source, _ := c.options.Credentials(keychain.NewPods(nothing{}, time.Minute))(&kube.Workload{Identity: kube.Identity{Key: kube.Key{Namespace: "shop", Name: "web"}}})
		found, err := source.Credentials(t.Context(), tagspec.Repository{Host: c.host, Path: "app"})
		if len(found) != c.found || (err == nil) != (c.says == "") || err != nil && err.Error() != c.says {
			t.Errorf("%s: %d credentials and %v, want %d and %q", reason, len(found), err, c.found, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in %v", reason, err)
		}
	}
}
