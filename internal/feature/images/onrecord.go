package images

import (
	"context"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Recorded are the images of workloads as the record shows them: the family of a program that
// doesn't query registries.
type Recorded struct {
	// Shared is that of Options.
	Shared func(input.ID) bool
}

// Kinds are the kinds of inputs that this family knows.
func (Recorded) Kinds() []input.Kind { return []input.Kind{input.KindImage} }

// Drop does nothing: no registry is queried.
func (Recorded) Drop(kube.Key) {}

// Assess reports the verdict on record for each container that an annotation names.
func (r Recorded) Assess(_ context.Context, w *kube.Workload, intent settings.Intent, entry record.Entry, _ kube.AskPast) (input.Assessment, error) {
	var all input.Assessment
	for _, request := range intent.Images {
		if _, ok := w.ImageOf(request.Container); ok && w.Problem == "" {
			all.Findings = append(all.Findings, r.finding(w.Key.Namespace, request, intent, entry))
		}
	}
	return all, nil
}

// finding is the verdict on record. Only the registry knows the version that an annotation stands
// for if the record doesn't contain the annotation's request.
func (r Recorded) finding(namespace string, request settings.ImageRequest, intent settings.Intent, entry record.Entry) input.Finding {
	id := input.Image(request.Container)
	given := entry.Inputs[id]
	memo, requested := ParseMemo(given.Memo), Observation{Request: request, Enforced: intent.Enforce}.request()
	f := input.Finding{
		ID: id, Reason: input.InStep,
		Versions: input.Versions{Delivered: given.Version, Current: given.Version, Shows: markOf(Pin{Digest: digestOf(given.Version)})},
	}
	switch {
	case given.Version.IsZero() && given.Due == "", memo.Request != requested:
		f.Reason = input.Unreadable
	case given.Due != "":
		f.Standing, f.Reason = input.Due, input.Changed
		if given.Due != given.Version.Short() {
			f.Current = fingerprint.Version{Basis: strings.TrimSuffix(algorithm, ":"), Sum: given.Due}
			f.Shows = markOf(Pin{Digest: digestOf(f.Current)})
		}
		if memo.isBad(digestOf(given.Version)) && versionOf(memo.Healthy).Short() == given.Due {
			f.Reason = input.PutBack
		}
		f.Change = input.Change{Namespace: namespace, ID: input.Image(request.Image.Repository.String()), Version: given.Due}
		if r.Shared != nil && r.Shared(f.Change.ID) {
			f.Change.Namespace = ""
		}
		if intent.Release <= entry.Released {
			f.Bars = memo.barsOf(given.Due)
		}
	}
	return f
}

// barsOf are what forbids to roll out a digest, of which only the beginning is known.
func (m Memo) barsOf(due string) []input.Bar {
	var bars []input.Bar
	if slices.ContainsFunc(m.Bad, func(bad string) bool { return strings.HasPrefix(bad, due) }) {
		bars = append(bars, input.Bar{Reason: input.Quarantined})
	}
	if m.Contested {
		bars = append(bars, input.Bar{Reason: input.Contested})
	}
	return bars
}
