package cluster

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Scope is a set of objects that is followed as a whole: a kind of workload or source, in one
// namespace or in all of them. The record lists followed scopes, because their objects may be
// older: a flag, a namespace label or a permission adds a whole scope at once, and Lockstep
// doesn't restart pods for that.
type Scope struct {
	schema.GroupKind
	// Namespace is empty where all of them are watched together.
	Namespace string
}

// sourceScope is the scope of a kind of sources.
func (a *area) sourceScope(kind input.Kind) Scope {
	return Scope{GroupKind: schema.GroupKind{Kind: string(kind)}, Namespace: a.namespace}
}

// ScopesOf returns the scopes that a workload and a kind of its sources belong to.
func (c *Cache) ScopesOf(key kube.Key, kind input.Kind) []Scope {
	a, ok := c.areas.Of(key.Namespace)
	if !ok {
		return nil
	}
	return []Scope{{GroupKind: key.GroupKind, Namespace: a.namespace}, a.sourceScope(kind)}
}

// listedScopes returns the scopes of an area that have been listed.
func (a *area) listedScopes() iter.Seq[Scope] {
	return func(yield func(Scope) bool) {
		for kind, m := range a.sources {
			if m.Status().Synced && !yield(a.sourceScope(kind)) {
				return
			}
		}
		for kind, m := range a.workloads {
			if m.Status().Synced && !yield(Scope{GroupKind: kind, Namespace: a.namespace}) {
				return
			}
		}
	}
}

// newest is the creation time of the area's youngest workload, by the API server's clock.
func (a *area) newest() time.Time {
	var newest time.Time
	for _, m := range a.workloads {
		m.Each(func(w *kube.Workload) {
			if w.Created.After(newest) {
				newest = w.Created
			}
		})
	}
	return newest
}
