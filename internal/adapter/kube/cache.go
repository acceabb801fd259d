package kube

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// CacheOptions say what a Cache watches.
type CacheOptions struct {
	// Kinds of workloads.
	Kinds []Kind
	// Namespaces to watch; none means all of them.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
	// Report is called when a resource can be followed, or no longer.
	Report func(Status)
}

// Cache is what the controller knows of the cluster without asking it.
type Cache struct {
	client     client.WithWatch
	options    CacheOptions
	hashers    Hashers
	users      *users
	namespaces *Mirror[*Namespace]
	sources    map[input.Kind]map[string]*Mirror[*Source]
	workloads  map[schema.GroupKind]map[string]*Mirror[*Workload]

	statuses []func() Status

	mu    sync.RWMutex
	wakes []func(Key)
}

// NewCache makes a cache that is empty until Run.
func NewCache(c client.WithWatch, o CacheOptions) *Cache {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{corev1.NamespaceAll}
	}
	cache := &Cache{
		client: c, options: o, users: newUsers(),
		sources:   map[input.Kind]map[string]*Mirror[*Source]{},
		workloads: map[schema.GroupKind]map[string]*Mirror[*Workload]{},
	}
	cache.namespaces = watched(cache, RoleSettings, newMirror("namespaces", slimNamespace, cache.namespaceChanged, o.Now))
	for _, kind := range []input.Kind{input.KindConfigMap, input.KindSecret} {
		cache.sources[kind] = map[string]*Mirror[*Source]{}
		for _, ns := range o.Namespaces {
			m := newMirror(resourceName(string(kind), ns), cache.slimSource, cache.sourceChanged, o.Now)
			cache.sources[kind][ns] = watched(cache, RoleSource, m)
		}
	}
	for _, kind := range o.Kinds {
		slim := func(object any) (*Workload, error) { return slimWorkload(kind, object) }
		cache.workloads[kind.GroupKind()] = map[string]*Mirror[*Workload]{}
		for _, ns := range o.Namespaces {
			m := newMirror(resourceName(kind.Kind, ns), slim, cache.workloadChanged, o.Now)
			cache.workloads[kind.GroupKind()][ns] = watched(cache, RoleWorkload, m)
		}
	}
	return cache
}

// watched puts a mirror under the cache's eyes.
func watched[T slimObject[T]](c *Cache, role Role, m *Mirror[T]) *Mirror[T] {
	status := func() Status {
		s := m.link.status()
		s.Resource, s.Role = m.name, role
		return s
	}
	m.link.changed = func() { c.options.Report(status()) }
	c.statuses = append(c.statuses, status)
	return m
}

// Run keeps the cache in step until the context ends, and returns when all its
// watches have ended. The hashers digest the sources.
func (c *Cache) Run(ctx context.Context, hashers Hashers) {
	c.hashers = hashers
	var group sync.WaitGroup
	group.Go(func() { c.namespaces.run(ctx, c.client, scope{list: &corev1.NamespaceList{}}) })
	for kind, mirrors := range c.sources {
		for ns, mirror := range mirrors {
			group.Go(func() { mirror.run(ctx, c.client, scope{list: newSourceList(kind), namespace: ns}) })
		}
	}
	for _, kind := range c.options.Kinds {
		for ns, mirror := range c.workloads[kind.GroupKind()] {
			group.Go(func() { mirror.run(ctx, c.client, scope{list: kind.newList(), namespace: ns}) })
		}
	}
	group.Wait()
}

// Wake adds a function that is called with each workload that may have to be
// looked at again. It must return quickly.
func (c *Cache) Wake(f func(Key)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes = append(c.wakes, f)
}

// Workload returns the copy of a workload.
func (c *Cache) Workload(key Key) (*Workload, bool) {
	return at(c.workloads[key.GroupKind], key.Namespace, key.Name)
}

// Lists reports whether the workloads of a kind in a namespace have been listed.
func (c *Cache) Lists(key Key) bool {
	mirror, ok := mirrorFor(c.workloads[key.GroupKind], key.Namespace)
	return ok && mirror.link.status().Synced
}

// Source returns the copy of a ConfigMap or Secret.
func (c *Cache) Source(namespace string, id input.Source) (*Source, bool) {
	return at(c.sources[id.Kind], namespace, id.Name)
}

// Absent is the version of a source that does not exist.
func (c *Cache) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return c.hashers[kind].AbsentVersion(keys)
}

// Knows reports whether the sources of a kind in a namespace have been listed.
func (c *Cache) Knows(kind input.Kind, namespace string) bool {
	mirror, ok := mirrorFor(c.sources[kind], namespace)
	return ok && mirror.link.status().Synced
}

// Namespace returns the copy of a namespace; without the right to list
// namespaces it is never found.
func (c *Cache) Namespace(name string) (*Namespace, bool) {
	return c.namespaces.Get("", name)
}

// SourcesMatching lists the sources of a namespace for which match is true.
func (c *Cache) SourcesMatching(namespace string, match func(input.Source) bool) []input.Source {
	var found []input.Source
	for _, mirrors := range c.sources {
		mirror, ok := mirrorFor(mirrors, namespace)
		if !ok {
			continue
		}
		mirror.Each(func(s *Source) {
			if s.Namespace == namespace && match(s.ID) {
				found = append(found, s.ID)
			}
		})
	}
	return found
}

// EachWorkload visits every workload.
func (c *Cache) EachWorkload(visit func(*Workload)) {
	for _, mirrors := range c.workloads {
		for _, mirror := range mirrors {
			mirror.Each(visit)
		}
	}
}

// Sizes is the number of sources and of workloads in the cache.
func (c *Cache) Sizes() (sources, workloads int) {
	for _, mirrors := range c.sources {
		for _, mirror := range mirrors {
			sources += mirror.Len()
		}
	}
	for _, mirrors := range c.workloads {
		for _, mirror := range mirrors {
			workloads += mirror.Len()
		}
	}
	return sources, workloads
}

// Status tells how well each resource can be followed.
func (c *Cache) Status() []Status {
	all := make([]Status, len(c.statuses))
	for i, status := range c.statuses {
		all[i] = status()
	}
	return all
}

// Answered reports whether the API server has said of every resource what there
// is to know. Before that, a source that is not found may only not be listed yet.
func (c *Cache) Answered() bool {
	for _, s := range c.Status() {
		if !s.Answered() {
			return false
		}
	}
	return true
}

func (c *Cache) slimSource(object any) (*Source, error) {
	return c.hashers.slimSource(object)
}

func (c *Cache) sourceChanged(old, now *Source) {
	s := now
	if s == nil {
		s = old
	}
	for _, key := range c.users.of(s.Namespace, s.ID) {
		c.wake(key)
	}
}

func (c *Cache) workloadChanged(old, now *Workload) {
	c.users.replace(old, now)
	if now != nil {
		c.wake(now.Key)
		return
	}
	c.wake(old.Key)
}

func (c *Cache) namespaceChanged(_, now *Namespace) {
	if now == nil {
		return
	}
	c.EachWorkload(func(w *Workload) {
		if w.Key.Namespace == now.Name {
			c.wake(w.Key)
		}
	})
}

func (c *Cache) wake(key Key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, f := range c.wakes {
		f(key)
	}
}

// at looks a name up in the mirror of its namespace, or in that of all.
func at[T slimObject[T]](mirrors map[string]*Mirror[T], namespace, name string) (T, bool) {
	mirror, ok := mirrorFor(mirrors, namespace)
	if !ok {
		var none T
		return none, false
	}
	return mirror.Get(namespace, name)
}

func mirrorFor[T slimObject[T]](mirrors map[string]*Mirror[T], namespace string) (*Mirror[T], bool) {
	if mirror, ok := mirrors[namespace]; ok {
		return mirror, true
	}
	mirror, ok := mirrors[corev1.NamespaceAll]
	return mirror, ok
}

func newSourceList(kind input.Kind) client.ObjectList {
	if kind == input.KindSecret {
		return &corev1.SecretList{}
	}
	return &corev1.ConfigMapList{}
}

// resourceName is a resource as people spell it: "configmaps", "secrets in shop".
func resourceName(kind, namespace string) string {
	name := strings.ToLower(kind) + "s"
	if namespace == corev1.NamespaceAll {
		return name
	}
	return name + " in " + namespace
}
