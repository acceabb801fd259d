package cluster

import (
	"iter"
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// View holds the workloads, sources and namespaces that a command has read. It supports the same
// queries as a Cache.
type View struct {
	hashers    kube.Hashers
	lending    lending
	workloads  map[kube.Key]*kube.Workload
	sources    map[place]*kube.Source
	namespaces map[string]*kube.Namespace
}

// NewView makes an empty view.
func NewView(hashers kube.Hashers) *View {
	return &View{
		hashers: hashers, workloads: map[kube.Key]*kube.Workload{}, sources: map[place]*kube.Source{}, namespaces: map[string]*kube.Namespace{},
	}
}

// PutWorkload adds or replaces a workload as stored in the API server.
func (v *View) PutWorkload(w *kube.Workload) {
	v.lending.replace(v.workloads[w.Key], w)
	v.workloads[w.Key] = w
}

// Workload returns a workload with the template that it borrows. It doesn't find lenders.
func (v *View) Workload(key kube.Key) (*kube.Workload, bool) {
	return v.lending.resolve(key, func(key kube.Key) (*kube.Workload, bool) {
		w, ok := v.workloads[key]
		return w, ok
	})
}

// Keys returns the keys of all workloads.
func (v *View) Keys() []kube.Key {
	return slices.Collect(maps.Keys(v.workloads))
}

// Namespace returns a namespace, unless it could not be read.
func (v *View) Namespace(name string) (*kube.Namespace, bool) {
	n, ok := v.namespaces[name]
	return n, ok
}

// Source returns a source.
func (v *View) Source(namespace string, id input.ID) (*kube.Source, bool) {
	s, ok := v.sources[place{namespace, id}]
	return s, ok
}

// SourcesMatching are the sources of a namespace that match a pattern.
func (v *View) SourcesMatching(namespace string, p settings.Pattern) iter.Seq[input.ID] {
	return func(yield func(input.ID) bool) {
		for at := range v.sources {
			if at.namespace == namespace && p.Matches(at.source) && !yield(at.source) {
				return
			}
		}
	}
}

// Absent is the version of a source that does not exist.
func (v *View) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return v.hashers.Kinds[kind].AbsentVersion(keys)
}
