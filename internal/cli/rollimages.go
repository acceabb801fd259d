package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/imagewatch"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/nodes"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry"
	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// images is the family of images for one run: each registry is queried once, with the pull
// secrets that the user may read.
func (r *roll) images(ctx context.Context) (*images.Inputs, error) {
	registries, err := r.options.images.registries()
	if err != nil {
		return nil, usageError{err}
	}
	platforms, err := r.platforms(ctx)
	if err != nil {
		return nil, usageError{err}
	}
	resolver := imagewatch.New(imagewatch.Options{Registries: registry.Options{Hosts: registries.Hosts, UserAgent: "lockstep/" + r.env.Version}})
	return images.New(images.Options{
		Watch: func(q imagewatch.Question, _ func()) images.Watch {
			found, err := resolver.Resolve(ctx, q)
			return answered{imagewatch.View{Resolution: found, Err: err}}
		},
		Credentials: registries.Credentials(keychain.NewPods(r.client, time.Minute)),
		Platforms:   platforms, Now: r.env.Now,
	}), nil
}

// answered is a question that was asked once.
type answered struct {
	view imagewatch.View
}

// View implements images.Watch.
func (a answered) View() imagewatch.View { return a.view }

// Stop implements images.Watch.
func (answered) Stop() {}

// platforms are those that an image must support. The nodes are listed when a container requests
// an image; if the user may not list them, a message says that their platforms aren't checked.
func (r *roll) platforms(ctx context.Context) (func(*kube.Workload) ([]v1.Platform, bool), error) {
	fixed, err := r.options.images.wantedPlatforms()
	if err != nil || len(fixed) > 0 {
		return func(*kube.Workload) ([]v1.Platform, bool) { return fixed, true }, err
	}
	nodePlatforms := nodes.New(r.client, nil)
	return func(w *kube.Workload) ([]v1.Platform, bool) {
		all, listed := nodePlatforms.Platforms()
		if !listed {
			if err := nodePlatforms.Read(ctx); err != nil {
				r.say(fmt.Sprintf("the image is taken whatever platforms it is for, unless --image-platforms names some: %v", err))
			}
			all, _ = nodePlatforms.Platforms()
		}
		return run.PlatformsFor(w, all), true
	}, nil
}

// leavePins leaves images unchanged that another writer pinned, or that a user accepted, unless
// --force is set. A reverted image isn't a pin.
func (r *roll) leavePins(got rollouts.Gathered) {
	for i, f := range got.Observation.Findings {
		if isPin(f) && r.known.Inputs[f.ID].RevertedTo == "" && !r.options.force {
			f.Image, f.Shows = "", got.Workload.Shown[f.ID]
			got.Observation.Findings[i] = f
			r.say(fmt.Sprintf("%s stays as it is: the template has a digest that another writer chose, or a user accepted it; --force rolls out the newest one", f.ID))
		}
	}
}

// isPin reports whether an image stays because a user accepted it or another writer pinned it.
func isPin(f input.Finding) bool {
	return f.Reason == input.Pinned || f.Reason == input.Accepted
}

// tell prints what a user should know about images, each once.
func (r *roll) tell(in rollouts.Observation) {
	for _, text := range in.Intent.Mistakes.Refused {
		r.say(text + "; the image stays as it is")
	}
	for _, warning := range in.Warnings {
		if warning.About.Kind == input.KindImage {
			r.say(warning.Text)
		}
	}
	for _, f := range in.Findings {
		for _, bar := range f.Bars {
			if !r.options.now && (bar.Reason == input.Quarantined || bar.Reason == input.Contested) {
				r.say(fmt.Sprintf("%s %s", f.ID, bar.By))
			}
		}
	}
}

// say writes a line to standard error, once in a run.
func (r *roll) say(text string) {
	if r.said[text] {
		return
	}
	if r.said == nil {
		r.said = map[string]bool{}
	}
	r.said[text] = true
	_, _ = fmt.Fprintln(r.env.Stderr, text)
}

// unresolved is an error when no registry has resolved a container's image.
func unresolved(in rollouts.Observation, rest string) error {
	var names []string
	for _, f := range in.Findings {
		if f.Reason == input.Unresolved {
			names = append(names, f.ID.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("no registry has said which image is the current one for %s; %s", strings.Join(names, ", "), rest)
}
