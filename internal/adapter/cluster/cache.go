package cluster

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/loop"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// CacheOptions configure what a Cache watches.
type CacheOptions struct {
	// Kinds of workloads.
	Kinds []kube.Kind
	// Sources are the kinds of sources.
	Sources []input.Kind
	// Namespaces to watch; none means all of them.
	Namespaces []string
	// Selector narrows all namespaces to those with these labels. Each of them then gets its own
	// watch, so objects of other namespaces are never transferred.
	Selector labels.Selector
	// Workloads narrows the workloads to those with these labels; nil selects all.
	Workloads labels.Selector
	// Vocabulary is the language of the annotations that are kept.
	Vocabulary settings.Vocabulary
	// IgnoreNamespaces skips the settings of namespaces, for a process that lacks the permission
	// to read them.
	IgnoreNamespaces bool
	// Together is true when changes are shared by namespaces. Then no workload is decided on
	// before all namespaces have been listed.
	Together bool
	// Now is the clock.
	Now func() time.Time
	// Report is called when a watch starts or stops working.
	Report func(mirror.Sync)
}

// Cache is the controller's local copy of the cluster state.
type Cache struct {
	client  client.WithWatch
	options CacheOptions
	hashers kube.Hashers
	users   *users
	awaited *awaited
	// changed are the sources that are still to be compared with patterns, in the form of key that
	// queues are compiled for anyway.
	changed    workqueue.TypedInterface[kube.Key]
	lending    lending
	namespaces *mirror.Mirror[*kube.Namespace]

	areas Areas[*area]

	mu sync.RWMutex
	// ending holds areas that are no longer wanted until they have ended. That can take a
	// minute: the library's pauses ignore the context.
	ending map[string]*area
	wakes  []func(kube.Key)
	begin  func(*area)
	// guests never change after Run began.
	guests []Guest
}

// NewCache makes a cache that is empty until Run.
func NewCache(c client.WithWatch, o CacheOptions) *Cache {
	cache := &Cache{client: c, options: o, users: newUsers(o.Vocabulary), ending: map[string]*area{}}
	cache.changed = loop.InTurn(func(at kube.Key) string { return at.Namespace })
	cache.awaited = newAwaited(cache.wake)
	cache.namespaces = mirror.New(mirror.Options[*kube.Namespace]{
		Name: "namespaces", Role: mirror.RoleSettings,
		Slim: kube.SlimNamespace, Indexed: cache.chooseNamespace, Changed: cache.namespaceChanged,
		Report: o.Report, Now: o.Now,
	})
	if o.Selector != nil {
		return cache
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{corev1.NamespaceAll}
	}
	for _, ns := range o.Namespaces {
		cache.areas.Put(ns, newArea(cache, ns))
	}
	return cache
}

// Run keeps the cache up to date until the context ends, and returns when all watches have
// ended. The hashers digest the sources.
func (c *Cache) Run(ctx context.Context, hashers kube.Hashers) {
	c.hashers = hashers
	var group sync.WaitGroup
	group.Go(func() { c.wakeByPattern(ctx) })
	defer context.AfterFunc(ctx, c.changed.ShutDown)()
	c.mu.Lock()
	c.begin = func(a *area) {
		group.Go(func() {
			a.run(ctx, c.client)
			c.forgetEnded(a)
		})
	}
	for _, a := range c.areas.All() {
		c.begin(a)
	}
	c.mu.Unlock()
	if !c.options.IgnoreNamespaces {
		c.namespaces.Run(ctx, c.client, mirror.Scope{List: &corev1.NamespaceList{}, Selector: c.options.Selector})
	}
	group.Wait()
}

// Wake adds a function that is called with each workload that may need another decision. It must
// return quickly.
func (c *Cache) Wake(f func(kube.Key)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes = append(slices.Clone(c.wakes), f)
}

// Workload returns the copy of a workload. A workload that uses another's template is returned
// with that template, and the lender isn't found as a workload of its own.
func (c *Cache) Workload(key kube.Key) (*kube.Workload, bool) {
	return c.lending.resolve(key, c.plainWorkload)
}

func (c *Cache) plainWorkload(key kube.Key) (*kube.Workload, bool) {
	a, ok := c.areas.Of(key.Namespace)
	if !ok {
		return nil, false
	}
	m, ok := a.workloads[key.GroupKind]
	if !ok {
		return nil, false
	}
	return m.Get(key.Namespace, key.Name)
}

// Lists reports whether the workloads of a kind in a namespace have been listed.
func (c *Cache) Lists(key kube.Key) bool {
	a, ok := c.areas.Of(key.Namespace)
	if !ok {
		return false
	}
	m, ok := a.workloads[key.GroupKind]
	return ok && m.Status().Synced
}

// Source returns the copy of a ConfigMap or Secret.
func (c *Cache) Source(namespace string, id input.ID) (*kube.Source, bool) {
	a, ok := c.areas.Of(namespace)
	if !ok || a.sources[id.Kind] == nil {
		return nil, false
	}
	s, ok := a.sources[id.Kind].Get(namespace, id.Name)
	if !ok || s.OwnRecord {
		return nil, false
	}
	return s, true
}

// Absent is the version of a source that does not exist.
func (c *Cache) Absent(kind input.Kind, keys fingerprint.Keys) fingerprint.Version {
	return c.hashers.Kinds[kind].AbsentVersion(keys)
}

// Knows reports whether the sources of a kind in a namespace have been listed.
func (c *Cache) Knows(kind input.Kind, namespace string) bool {
	a, ok := c.areas.Of(namespace)
	return ok && a.sources[kind] != nil && a.sources[kind].Status().Synced
}

// Namespace returns the copy of a namespace; without the permission to list
// namespaces it is never found.
func (c *Cache) Namespace(name string) (*kube.Namespace, bool) {
	return c.namespaces.Get("", name)
}

// ChoosesNamespaces reports whether namespaces are selected by label. Lockstep must then leave
// unknown namespaces alone: they were never selected, or no longer are.
func (c *Cache) ChoosesNamespaces() bool {
	return c.options.Selector != nil
}

// KnowsNamespaces reports whether the settings of namespaces have been listed, or are ignored.
// Otherwise a workload's effective settings aren't fully known.
func (c *Cache) KnowsNamespaces() bool {
	return c.options.IgnoreNamespaces || c.namespaces.Status().Works()
}

// LacksNamespace reports whether a namespace is certainly gone or being deleted.
func (c *Cache) LacksNamespace(name string) bool {
	if c.options.IgnoreNamespaces || !c.namespaces.Status().Works() {
		return false
	}
	ns, ok := c.namespaces.Get("", name)
	return !ok && c.options.Selector == nil || ok && ns.Deleting
}

// SourcesMatching are the sources of a namespace that match a pattern, by name. It looks only
// at names with the pattern's prefix.
func (c *Cache) SourcesMatching(namespace string, p settings.Pattern) iter.Seq[input.ID] {
	return func(yield func(input.ID) bool) {
		a, ok := c.areas.Of(namespace)
		if !ok {
			return
		}
		for name := range a.names.withPrefix(a.sources[p.Kind], place{namespace, input.ID(p)}, p.Prefix()) {
			id := input.ID{Kind: p.Kind, Name: name}
			if !p.Matches(id) {
				continue
			}
			if _, exists := c.Source(namespace, id); exists && !yield(id) {
				return
			}
		}
	}
}

// Users lists the workloads that reference the source or list it in their settings.
func (c *Cache) Users(namespace string, id input.ID) []kube.Key {
	return c.users.of(place{namespace, id})
}

// EachWorkload visits every workload.
func (c *Cache) EachWorkload(visit func(*kube.Workload)) {
	for _, a := range c.areas.All() {
		for _, m := range a.workloads {
			m.Each(visit)
		}
	}
}

// Sizes is the number of sources and of workloads in the cache.
func (c *Cache) Sizes() (sources, workloads int) {
	for _, a := range c.areas.All() {
		for _, m := range a.sources {
			sources += m.Len()
		}
		for _, m := range a.workloads {
			workloads += m.Len()
		}
	}
	return sources, workloads
}

// Status reports how well each resource can be watched.
func (c *Cache) Status() []mirror.Sync {
	var all []mirror.Sync
	if !c.options.IgnoreNamespaces {
		all = append(all, c.namespaces.Status())
	}
	for _, a := range c.areas.All() {
		all = slices.AppendSeq(all, a.status())
	}
	return all
}

// Defaults reports whether the settings of namespaces are as well known as they will be. Before
// that, a workload followed through its namespace's default appears not to be followed.
func (c *Cache) Defaults() bool {
	return c.options.IgnoreNamespaces || c.namespaces.Status().Answered()
}

// Settled reports whether enough is known to decide on a workload: its own kind and its sources
// have been listed, and listing every other kind in its area has at least been tried. A kind
// that cannot be listed doesn't block workloads of other kinds. (While Rollouts cannot be
// listed, a Deployment whose template a Rollout uses is treated as a workload of its own.)
func (c *Cache) Settled(key kube.Key) bool {
	a, ok := c.areas.Of(key.Namespace)
	if !ok {
		return true
	}
	needed := []*area{a}
	if c.options.Together {
		needed = c.areas.All()
	}
	broken := false
	for _, each := range needed {
		for s := range each.status() {
			if !s.Answered() && !s.Broken() {
				return false
			}
			broken = broken || each == a && s.Broken()
		}
	}
	if !broken {
		return true
	}
	w, ok := c.Workload(key)
	return !ok || !slices.ContainsFunc(c.users.kindsOf(w), func(kind input.Kind) bool {
		return a.sources[kind] != nil && !a.sources[kind].Status().Answered()
	})
}

func (c *Cache) slimSource(object any) (*kube.Source, error) {
	return c.hashers.Slim(object, c.options.Vocabulary)
}

func (c *Cache) sourceChanged(old, now *kube.Source) {
	s := now
	if s == nil {
		s = old
	}
	if a, ok := c.areas.Of(s.Namespace); ok && (old == nil || now == nil) {
		a.names.forget(place{s.Namespace, s.ID})
	}
	at := place{s.Namespace, s.ID}
	for _, key := range c.users.named(at) {
		c.wake(key)
	}
	if c.users.hasPatterns(at.namespace) {
		c.changed.Add(kube.Key{GroupKind: schema.GroupKind{Kind: string(at.source.Kind)}, Namespace: at.namespace, Name: at.source.Name})
	}
}

// wakeByPattern wakes the workloads whose patterns match a changed source. It isn't done in the
// watch, where one namespace with very many patterns would delay the changes of all.
func (c *Cache) wakeByPattern(ctx context.Context) {
	for {
		changed, over := c.changed.Get()
		if over || ctx.Err() != nil {
			return
		}
		for _, key := range c.users.matched(place{changed.Namespace, input.ID{Kind: input.Kind(changed.Kind), Name: changed.Name}}) {
			c.wake(key)
		}
		c.changed.Done(changed)
	}
}

// workloadIndexed updates which workloads use which sources, and which borrow a template.
func (c *Cache) workloadIndexed(old, now *kube.Workload) {
	c.users.replace(old, now)
	for _, g := range c.guests {
		g.WorkloadIndexed(old, now)
	}
	c.lending.replace(old, now)
}

func (c *Cache) workloadChanged(old, now *kube.Workload) {
	for _, g := range c.guests {
		g.WorkloadChanged(old, now)
	}
	// A workload that starts or stops lending its template needs a new decision too.
	if before, after := lenderOf(old), lenderOf(now); before != after {
		for _, key := range []kube.Key{before, after} {
			if key != (kube.Key{}) {
				c.wake(key)
			}
		}
	}
	if now != nil {
		c.wake(now.Key)
		return
	}
	c.awaited.forget(old.Key)
	c.wake(old.Key)
}

// namespaceChanged wakes a namespace's workloads when its settings changed.
func (c *Cache) namespaceChanged(_, now *kube.Namespace) {
	if now == nil {
		return
	}
	a, ok := c.areas.Of(now.Name)
	if !ok {
		return
	}
	for _, m := range a.workloads {
		m.EachIn(now.Name, func(w *kube.Workload) { c.wake(w.Key) })
	}
}

// chooseNamespace starts or stops watching a namespace when namespaces are selected by label.
func (c *Cache) chooseNamespace(old, now *kube.Namespace) {
	if c.options.Selector == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now == nil {
		if a, ok := c.areas.Of(old.Name); ok {
			a.leave()
			c.areas.Remove(old.Name, a)
			c.ending[old.Name] = a
		}
		return
	}
	if _, ok := c.areas.Of(now.Name); ok {
		return
	}
	a := newArea(c, now.Name)
	if last, ok := c.ending[now.Name]; ok {
		a.before = last.gone
	}
	c.areas.Put(now.Name, a)
	c.begin(a)
}

func (c *Cache) forgetEnded(a *area) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending[a.namespace] == a {
		delete(c.ending, a.namespace)
	}
}

func (c *Cache) wake(key kube.Key) {
	keys := append([]kube.Key{key}, c.lending.borrowersOf(key)...)
	c.mu.RLock()
	wakes := c.wakes
	c.mu.RUnlock()
	// Outside the lock: the woken functions query the cache.
	for _, f := range wakes {
		for _, k := range keys {
			f(k)
		}
	}
}
