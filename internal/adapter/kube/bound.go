package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/podrefs"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// maxText bounds texts whose length the API server doesn't check: a tenant can write 1 MiB as the
// UID of an owner. Real ones are shorter. A kind and a name have at most 317 bytes.
const maxText = 512

// Cut shortens a text that is longer than any that Kubernetes writes there.
func Cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.Clone(strings.ToValidUTF8(text[:maxText], "")) // A part of the text would keep it whole.
}

// ControllerOf returns the owner that controls an object, nil without one.
func ControllerOf(o metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(o)
	if owner != nil {
		owner.APIVersion, owner.Kind, owner.Name = Cut(owner.APIVersion), Cut(owner.Kind), Cut(owner.Name)
		owner.UID = types.UID(Cut(string(owner.UID)))
	}
	return owner
}

// cut shortens the texts of a status. A tenant may write them too.
func (p Progress) cut() Progress {
	p.UpdateRevision, p.PodHash, p.StableHash, p.Phase = Cut(p.UpdateRevision), Cut(p.PodHash), Cut(p.StableHash), Cut(p.Phase)
	p.Ready, p.Stalled = health.Condition(Cut(string(p.Ready))), health.Condition(Cut(string(p.Stalled)))
	return p
}

// maxKept bounds the names, keys, images and labels that are kept of one workload. Its template
// can have 1 MiB of them, and Lockstep keeps every workload in memory.
const maxKept = 64 << 10

// bound drops the variable part of a workload that is too large, and says so.
func (w *Workload) bound() {
	if w.kept() <= maxKept {
		return
	}
	w.Excess = fmt.Sprintf("the names, keys, images and selector in its pod template take more than %d KiB", maxKept>>10)
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
	size += len(w.Pull.ServiceAccount) + len(w.Pull.OS) + len(w.Pull.Architecture)
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
