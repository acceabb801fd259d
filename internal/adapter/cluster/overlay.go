package cluster

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Snapshot is a view of one moment. Sources that cannot be read are assumed to exist.
type Snapshot struct {
	*View
	// unseen lists the unreadable kinds of sources by namespace.
	unseen map[string][]input.Kind
}

// Overlay is the current state of some namespaces, and their state after planned changes.
type Overlay struct {
	Before, After *Snapshot

	now time.Time
	// version is that of the last planned write. Planned writes come after all existing ones.
	version uint64
}

// firstPlanned is higher than every real resource version.
const firstPlanned = 1 << 62

// NewOverlay makes an empty overlay.
func NewOverlay(hashers kube.Hashers, now time.Time) *Overlay {
	unseen := map[string][]input.Kind{}
	state := func() *Snapshot { return &Snapshot{View: NewView(hashers), unseen: unseen} }
	return &Overlay{Before: state(), After: state(), now: now, version: firstPlanned}
}

// HideSources records that a kind of source cannot be read in a namespace. Each hidden source
// then gets a unique placeholder content.
func (o *Overlay) HideSources(namespace string, kind input.Kind) {
	if !o.Before.Hides(namespace, kind) {
		o.Before.unseen[namespace] = append(o.Before.unseen[namespace], kind)
	}
}

// HideSource records that one source cannot be read, although others of its kind can.
func (o *Overlay) HideSource(namespace string, id input.ID) {
	ghost := o.Before.ghost(namespace, id)
	o.Before.sources[place{namespace, id}], o.After.sources[place{namespace, id}] = ghost, ghost
}

// AddWorkload adds a workload in its current state.
func (o *Overlay) AddWorkload(w *kube.Workload) {
	w.First(mirror.Arrival{})
	o.Before.PutWorkload(w)
	o.After.PutWorkload(w)
}

// AddSource adds a source in its current state, and skips Lockstep's own record.
func (o *Overlay) AddSource(s *kube.Source) {
	if s.OwnRecord {
		return
	}
	s.First(mirror.Arrival{At: o.now})
	o.Before.sources[place{s.Namespace, s.ID}], o.After.sources[place{s.Namespace, s.ID}] = s, s
}

// AddNamespace adds a namespace in its current state.
func (o *Overlay) AddNamespace(n *kube.Namespace) {
	n.First(mirror.Arrival{})
	o.Before.namespaces[n.Name], o.After.namespaces[n.Name] = n, n
}

// PlanWorkload plans a workload, after everything planned before.
func (o *Overlay) PlanWorkload(w *kube.Workload) {
	w.PlannedAfter(o.After.workloads[w.Key], o.next(), o.now)
	o.After.PutWorkload(w)
}

// PlanSource plans a source.
func (o *Overlay) PlanSource(s *kube.Source) {
	at := place{s.Namespace, s.ID}
	old := o.After.sources[at]
	if old == nil && o.After.Hides(s.Namespace, s.ID.Kind) {
		old = o.After.ghost(s.Namespace, s.ID)
		o.Before.sources[at] = old
	}
	s.PlannedAfter(old, o.next(), o.now)
	o.After.sources[at] = s
}

// PlanNamespace plans a namespace.
func (o *Overlay) PlanNamespace(n *kube.Namespace) {
	n.PlannedAfter(o.After.namespaces[n.Name], o.next())
	o.After.namespaces[n.Name] = n
}

func (o *Overlay) next() string {
	o.version++
	return strconv.FormatUint(o.version, 10)
}

// Source returns a source; one that cannot be read is returned with placeholder content.
func (s *Snapshot) Source(namespace string, id input.ID) (*kube.Source, bool) {
	if found, ok := s.View.Source(namespace, id); ok {
		return found, true
	}
	if s.Hides(namespace, id.Kind) {
		return s.ghost(namespace, id), true
	}
	return nil, false
}

// Knows is always true: unreadable sources are assumed to exist.
func (s *Snapshot) Knows(input.Kind, string) bool { return true }

// Hides reports whether the sources of a kind cannot be read in a namespace.
func (s *Snapshot) Hides(namespace string, kind input.Kind) bool {
	return slices.Contains(s.unseen[namespace], kind)
}

// IsGhost reports whether a source cannot be read.
func (s *Snapshot) IsGhost(namespace string, id input.ID) bool {
	found, ok := s.sources[place{namespace, id}]
	return ok && found.ResourceVersion == "" || !ok && s.Hides(namespace, id.Kind)
}

// ghost stands for a source that cannot be read.
func (s *Snapshot) ghost(namespace string, id input.ID) *kube.Source {
	content := s.hashers.Kinds[id.Kind].Content(map[string]string{"": "content that is not visible to you"}, nil)
	return &kube.Source{ID: id, Namespace: namespace, Content: content}
}
