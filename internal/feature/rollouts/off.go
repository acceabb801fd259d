package rollouts

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Off replaces a family that is switched off: it warns workloads that ask for its inputs,
// and leaves the record of those inputs as it is.
type Off struct {
	// Reason is the warning, and Advice explains how to switch the family on.
	Reason input.Reason
	Advice string
	// Asked lists the annotations of a workload that have no effect.
	Asked func(*kube.Workload, settings.Intent) []string
}

// Kinds returns none.
func (Off) Kinds() []input.Kind { return nil }

// Drop has nothing to forget.
func (Off) Drop(kube.Key) {}

// Assess warns about every request.
func (o Off) Assess(_ context.Context, w *kube.Workload, intent settings.Intent, _ record.Entry, _ kube.AskPast) (input.Assessment, error) {
	var all input.Assessment
	for _, key := range o.Asked(w, intent) {
		all.Warnings = append(all.Warnings, input.Warning{Reason: o.Reason, Text: "annotation " + key + " has no effect: " + o.Advice})
	}
	return all, nil
}
