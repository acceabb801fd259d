package kube

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// maxKept bounds the names, keys, images and labels that are kept of one workload. Its template
// can have 1 MiB of them, and Lockstep keeps every workload in memory.
const maxKept = 64 << 10

// bound drops the variable part of a workload that is too large, and says so.
func (w *Workload) bound() {
	if w.kept() <= maxKept {
		return
	}
	w.Excess = fmt.Sprintf("the names, keys, images and selector of its pod template have more than %d KiB", maxKept>>10)
	w.Selector = nil
	w.Containers, w.Images, w.Pull, w.Refs, w.Keeps, w.Shown = nil, nil, PullSettings{}, nil, nil, nil
}

// boundSources drops the sources beyond those that a workload can follow. It keeps one more than
// there may be, so input.Excess notices. The sources that the workload's annotation lists come
// first: a workload that lists a few of thousands follows these.
func (w *Workload) boundSources(words settings.Vocabulary) {
	w.Keeps = enough(w.Keeps, func(id input.ID) input.ID { return id })
	source := func(r podrefs.Ref) input.ID { return r.Source }
	if len(enough(w.Refs, source)) == len(w.Refs) {
		return
	}
	intent := words.Intent(w.Annotations, nil)
	isListed := func(r podrefs.Ref) bool { return intent.Follows(r.Source, false, settings.Source{}) }
	others := slices.DeleteFunc(slices.Clone(w.Refs), isListed)
	listed := slices.DeleteFunc(w.Refs, func(r podrefs.Ref) bool { return !isListed(r) })
	w.Refs = enough(slices.Concat(listed, others), source)
	podrefs.Sort(w.Refs)
}

// enough returns the first elements, up to the one with which their sources are too many.
func enough[T any](all []T, source func(T) input.ID) []T {
	names := 0
	for i, one := range all {
		if names += len(source(one).Name); i == input.MaxInputs || names > input.MaxNames {
			return slices.Clone(all[:i+1])
		}
	}
	return all
}

// kept is about how many bytes the variable part of the workload needs.
func (w *Workload) kept() int {
	const perElement = 32
	size := 0
	if w.Selector != nil {
		size += w.Selector.Size()
	}
	for _, c := range w.Containers {
		size += perElement + len(c.Name)
		for name, m := range c.Markers {
			size += perElement + len(name) + len(m.Value)
		}
	}
	for _, i := range w.Images {
		size += perElement + len(i.Name) + len(i.Image)
	}
	for _, name := range w.Pull.Secrets {
		size += perElement + len(name)
	}
	for _, ref := range w.Refs {
		size += perElement + len(ref.Source.Name) + ref.Keys.Size()
	}
	for _, id := range w.Keeps {
		size += perElement + len(id.Name)
	}
	for id, mark := range w.Shown {
		size += perElement + len(id.Name) + len(mark.Digest)
	}
	return size
}
