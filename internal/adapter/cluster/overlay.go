package cluster

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// State is what is known of workloads, sources and namespaces at one moment. It answers the
// questions that a Cache answers.
type State struct {
	hashers    kube.Hashers
	workloads  map[kube.Key]*kube.Workload
	sources    map[place]*kube.Source
	namespaces map[string]*kube.Namespace
	// unseen are the kinds of sources that may not be read, by namespace.
	unseen map[string][]input.Kind
	lent   map[kube.Key]bool
}

// Overlay is what the API server says of some namespaces, and what would be there after
// changes that were not made.
type Overlay struct {
	Before, After *State

	now time.Time
	// version is that of the last planned write. Planned writes come after all that exists.
	version uint64
}

// firstPlanned is higher than every resource version that exists.
const firstPlanned = 1 << 62

// NewOverlay makes an overlay that knows nothing yet.
func NewOverlay(hashers kube.Hashers, now time.Time) *Overlay {
	unseen := map[string][]input.Kind{}
	state := func() *State {
		return &State{
			hashers: hashers, unseen: unseen, workloads: map[kube.Key]*kube.Workload{}, sources: map[place]*kube.Source{},
			namespaces: map[string]*kube.Namespace{}, lent: map[kube.Key]bool{},
		}
	}
	return &Overlay{Before: state(), After: state(), now: now, version: firstPlanned}
}

// HideSources notes that the sources of a kind cannot be read in a namespace. Each of them
// then has a content that nothing else has.
func (o *Overlay) HideSources(namespace string, kind input.Kind) {
	if !o.Before.Hides(namespace, kind) {
		o.Before.unseen[namespace] = append(o.Before.unseen[namespace], kind)
	}
}

// HideSource notes that one source cannot be read, although others of its kind can.
func (o *Overlay) HideSource(namespace string, id input.ID) {
	ghost := o.Before.ghost(namespace, id)
	o.Before.sources[place{namespace, id}], o.After.sources[place{namespace, id}] = ghost, ghost
}

// AddWorkload adds a workload as it is now.
func (o *Overlay) AddWorkload(w *kube.Workload) {
	w.First(mirror.Arrival{})
	o.Before.putWorkload(w)
	o.After.putWorkload(w)
}

// AddSource adds a source as it is now. Lockstep's own record is none.
func (o *Overlay) AddSource(s *kube.Source) {
	if s.OwnRecord {
		return
	}
	s.First(mirror.Arrival{At: o.now})
	o.Before.sources[place{s.Namespace, s.ID}], o.After.sources[place{s.Namespace, s.ID}] = s, s
}

// AddNamespace adds a namespace as it is now.
func (o *Overlay) AddNamespace(n *kube.Namespace) {
	n.First(mirror.Arrival{})
	o.Before.namespaces[n.Name], o.After.namespaces[n.Name] = n, n
}

// PlanWorkload plans a workload that comes after all that was planned before.
func (o *Overlay) PlanWorkload(w *kube.Workload) {
	w.PlannedAfter(o.After.workloads[w.Key], o.next(), o.now)
	o.After.putWorkload(w)
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

func (s *State) putWorkload(w *kube.Workload) {
	if old := s.workloads[w.Key]; old != nil {
		delete(s.lent, old.Borrows)
	}
	s.workloads[w.Key] = w
	if w.Borrows != (kube.Key{}) {
		s.lent[w.Borrows] = true
	}
}

// Workload returns a workload with the template that it borrows; one that lends its template
// is none.
func (s *State) Workload(key kube.Key) (*kube.Workload, bool) {
	w, ok := s.workloads[key]
	switch {
	case !ok || s.lent[key]:
		return nil, false
	case w.Borrows == kube.Key{}:
		return w, true
	case s.workloads[w.Borrows] == nil:
		return w.WithoutLender(), true
	}
	return w.Borrowing(s.workloads[w.Borrows]), true
}

// Keys are those of all workloads.
func (s *State) Keys() []kube.Key {
	return slices.Collect(maps.Keys(s.workloads))
}

// Namespace returns a namespace, unless it could not be read.
func (s *State) Namespace(name string) (*kube.Namespace, bool) {
	n, ok := s.namespaces[name]
	return n, ok
}

// Source returns a source; one that cannot be read is returned with a made-up content.
func (s *State) Source(namespace string, id input.ID) (*kube.Source, bool) {
	if found, ok := s.sources[place{namespace, id}]; ok {
		return found, true
	}
	if s.Hides(namespace, id.Kind) {
		return s.ghost(namespace, id), true
	}
	return nil, false
}

// SourcesMatching lists the sources of a namespace for which match is true.
func (s *State) SourcesMatching(namespace string, match func(input.ID) bool) []input.ID {
	var found []input.ID
	for at := range s.sources {
		if at.namespace == namespace && match(at.source) {
			found = append(found, at.source)
		}
	}
	return found
}

// Knows is always true: what cannot be read is assumed.
func (s *State) Knows(input.Kind, string) bool { return true }

// Absent is the version of a source that does not exist.
func (s *State) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return s.hashers.Kinds[kind].AbsentVersion(keys)
}

// Hides reports whether the sources of a kind cannot be read in a namespace.
func (s *State) Hides(namespace string, kind input.Kind) bool {
	return slices.Contains(s.unseen[namespace], kind)
}

// IsGhost reports whether a source cannot be read.
func (s *State) IsGhost(namespace string, id input.ID) bool {
	found, ok := s.sources[place{namespace, id}]
	return ok && found.ResourceVersion == "" || !ok && s.Hides(namespace, id.Kind)
}

// ghost stands for a source that cannot be read.
func (s *State) ghost(namespace string, id input.ID) *kube.Source {
	content := s.hashers.Kinds[id.Kind].Content(map[string]string{"": "a content that may not be seen"}, nil)
	return &kube.Source{ID: id, Namespace: namespace, Content: content}
}
