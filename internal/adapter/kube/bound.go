package kube

import "fmt"

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
