package run

import (
	"context"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/nodes"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// pullSecretsKept is how long a command uses the pull secrets that it has read.
const pullSecretsKept = time.Minute

// Resolver queries registries when it is asked, for one run of a command.
func (o Registries) Resolver(version string) *imagewatch.Resolver {
	return imagewatch.New(imagewatch.Options{Registries: registry.Options{Hosts: o.Hosts, UserAgent: "lockstep/" + version}})
}

// UserCredentials are those of the pods, as far as the user may read them, then those of the
// options.
func (o Registries) UserCredentials(c client.Client) func(*kube.Workload) (keychain.Source, string) {
	return o.Credentials(keychain.NewPods(c, pullSecretsKept))
}

// Once configures the family of images for one run of a command.
type Once struct {
	Registries Registries
	// Platforms are those that an image must support; those of the nodes if there are none, and
	// no Default.
	Platforms []v1.Platform
	// Default is the platform for workloads that don't set their own, empty for the index.
	Default string
	// Unchecked hears why the platforms of the nodes aren't known.
	Unchecked func(error)
	Version   string
	Now       func() time.Time
}

// ImagesOnce is the family of images for one run of a command: each registry is queried once,
// with the pull secrets that the user may read.
func ImagesOnce(ctx context.Context, c client.Client, o Once) *images.Inputs {
	resolver := o.Registries.Resolver(o.Version)
	return images.New(images.Options{
		Watch: func(q imagewatch.Question, _ func()) images.Watch {
			found, err := resolver.Resolve(ctx, q)
			return answered{imagewatch.View{Resolution: found, Err: err}}
		},
		Credentials: o.Registries.UserCredentials(c),
		Platforms:   o.neededPlatforms(ctx, c), Now: o.Now,
	})
}

// answered is a question that was asked once.
type answered struct {
	view imagewatch.View
}

// View implements images.Watch.
func (a answered) View() imagewatch.View { return a.view }

// Stop implements images.Watch.
func (answered) Stop() {}

// neededPlatforms lists the nodes when a container requests an image.
func (o Once) neededPlatforms(ctx context.Context, c client.Client) func(*kube.Workload) ([]v1.Platform, bool) {
	if fixed := (Images{Platforms: o.Platforms}).fixedPlatforms(o.Default); fixed != nil {
		return fixed
	}
	nodePlatforms := nodes.New(c, nil)
	return func(w *kube.Workload) ([]v1.Platform, bool) {
		all, listed := nodePlatforms.Platforms()
		if !listed {
			if err := nodePlatforms.Read(ctx); err != nil {
				o.Unchecked(err)
			}
			all, _ = nodePlatforms.Platforms()
		}
		return platformsFor(w, all), true
	}
}
