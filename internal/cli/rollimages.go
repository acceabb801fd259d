package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// images is the family of images for one run.
func (r *roll) images(ctx context.Context) (*images.Inputs, error) {
	registries, err := r.options.images.registries()
	if err != nil {
		return nil, usageError{err}
	}
	platforms, err := r.options.images.wantedPlatforms()
	if err != nil {
		return nil, usageError{err}
	}
	return run.ImagesOnce(ctx, r.client, run.Once{
		Registries: registries, Platforms: platforms, Default: r.options.images.platforms.standard, Version: r.env.Version, Now: r.env.Now,
		Unchecked: func(err error) {
			r.say(fmt.Sprintf("the platforms of the image aren't checked, unless --image-platforms names some: %v", err))
		},
	}), nil
}

// leavePins leaves images unchanged that another writer pinned, or that a user accepted, unless
// --force is set. A reverted image isn't a pin.
func (r *roll) leavePins(got rollouts.Gathered) {
	for i, f := range got.Observation.Findings {
		if isPin(f) && r.known.Inputs[f.ID].RevertedTo == "" && !r.options.force {
			f.Image, f.Shows = "", got.Workload.Shown[f.ID]
			got.Observation.Findings[i] = f
			r.say(fmt.Sprintf("%s isn't changed: another writer chose the digest in the template, or a user accepted it; --force rolls out the newest one", f.ID))
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
		r.say(text + "; the image isn't changed")
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
	_ = say(r.env.Stderr, "%s%s", r.about, text)
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
	return fmt.Errorf("the current image for %s isn't known, because no registry answered; %s", strings.Join(names, ", "), rest)
}
