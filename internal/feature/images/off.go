package images

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Off takes the place of Inputs in a controller that follows no images: it tells
// whoever asks for one.
type Off struct {
	// Advice says how to switch it on.
	Advice string
}

// Kinds are none: what is on record of images stays.
func (Off) Kinds() []input.Kind { return nil }

// Drop has nothing to forget.
func (Off) Drop(kube.Key) {}

// Assess warns of every request.
func (o Off) Assess(_ context.Context, _ *kube.Workload, intent settings.Intent, _ record.Entry) (input.Assessment, error) {
	var all input.Assessment
	for _, request := range intent.Images {
		all.Warnings = append(all.Warnings, input.Warning{Reason: input.ImagesOff, Text: "annotation " + request.Key() + " has no effect: " + o.Advice})
	}
	return all, nil
}
