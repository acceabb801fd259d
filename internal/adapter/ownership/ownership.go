package ownership

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
)

// Options configure a Watch.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Report is called when a watch starts or stops working.
	Report func(mirror.Sync)
	// Ready, if set, reports whether everything else that decisions depend on is known. Until
	// then Feed waits.
	Ready func() bool
	// Secrets are the namespaces whose Secrets are watched; nil means all that the cache
	// watches. Attaching a Secret needs permission to patch it, which operators grant sparingly.
	Secrets []string
}

// SecretsIn returns the namespaces in which to watch Secrets, where the cache watches one
// namespace or all of them.
func (o Options) SecretsIn(namespace string) []string {
	switch {
	case o.Secrets == nil, slices.Contains(o.Secrets, namespace):
		return []string{namespace}
	case namespace == corev1.NamespaceAll:
		return o.Secrets
	}
	return nil
}

// Watch knows the revisioned objects of a cluster and everything that may hold them. It watches
// the same namespaces as its cache, and takes workloads that are their own revisions from there.
// It watches other revisions only once the first revisioned object exists: a cluster without any
// pays for two empty watches.
type Watch struct {
	cache   *cluster.Cache
	options Options
	used    *uses

	needed  chan struct{} // closed when there is a revisioned object
	setNeed func()

	areas cluster.Areas[*area]

	mu  sync.RWMutex
	add func(ObjectKey)
}

// New makes a Watch that runs with the cache.
func New(c *cluster.Cache, o Options) *Watch {
	w := &Watch{cache: c, options: o, used: newUses(), needed: make(chan struct{})}
	w.setNeed = sync.OnceFunc(func() { close(w.needed) })
	c.Join(w)
	return w
}

// Enter implements cluster.Guest.
func (w *Watch) Enter(namespace string) cluster.Stay {
	a := newArea(w, namespace)
	w.areas.Put(namespace, a)
	return a
}

// WorkloadIndexed implements cluster.Guest: a workload that is its own revision holds the
// sources it uses.
func (w *Watch) WorkloadIndexed(old, now *kube.Workload) {
	w.used.replace(lineage.WorkloadHolder(old), lineage.WorkloadHolder(now))
}

// WorkloadChanged implements cluster.Guest.
func (w *Watch) WorkloadChanged(old, now *kube.Workload) {
	w.holderChanged(lineage.WorkloadHolder(old), lineage.WorkloadHolder(now))
}

// Needed is closed once a revisioned object exists or existed.
func (w *Watch) Needed() <-chan struct{} {
	return w.needed
}

const (
	// firstLook and laterLooks are the intervals at which Feed checks for areas to open.
	firstLook  = 50 * time.Millisecond
	laterLooks = time.Second
)

// Feed calls add with every revisioned object that needs a decision: once each, as soon as
// everything in its area is known, and then when the object or a revision that uses it changes.
// It returns when the context ends.
func (w *Watch) Feed(ctx context.Context, add func(ObjectKey)) {
	w.mu.Lock()
	w.add = add
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		return
	case <-w.needed:
	}
	for pause := firstLook; ; pause = min(2*pause, laterLooks) {
		for _, a := range w.areas.All() {
			w.open(a)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// open lets the objects of an area be decided on, once enough is known.
func (w *Watch) open(a *area) {
	if !a.isLearning() || w.options.Ready != nil && !w.options.Ready() || !a.answered() || !a.setOpen() {
		return
	}
	a.eachObject(func(o *Owned) { w.wake(a, o.Key) })
}

// Object returns the copy of a revisioned object, if it can be decided on.
func (w *Watch) Object(key ObjectKey) (*Owned, bool) {
	a, ok := w.areas.Of(key.Namespace)
	if !ok || !a.isOpen() {
		return nil, false
	}
	return a.object(key)
}

// Users returns the living revisions that use an object, by name.
func (w *Watch) Users(key ObjectKey) []*lineage.Holder {
	return byName(w.used.of(key))
}

func byName(found []*lineage.Holder) []*lineage.Holder {
	sorting.By(found, func(a, b *lineage.Holder) int { return cmp.Compare(a.String(), b.String()) })
	return found
}

// TooLarge returns the living revisions of a namespace that name too many objects to be kept, by
// name: each may use any object there.
func (w *Watch) TooLarge(namespace string) []*lineage.Holder {
	return byName(w.used.tooLarge(namespace))
}

// UnreadableKinds names the kinds of revisions that currently cannot be read in a namespace,
// because of a missing permission or an error: an object may have users that Lockstep cannot
// see.
func (w *Watch) UnreadableKinds(namespace string) []string {
	a, ok := w.areas.Of(namespace)
	if !ok {
		return nil
	}
	var unreadable []string
	for kind, status := range a.holderStatus() {
		if !status.Works() {
			unreadable = append(unreadable, kind)
		}
	}
	slices.Sort(unreadable)
	return unreadable
}

// Status reports how well each resource that is needed now can be watched, besides those of the
// cache.
func (w *Watch) Status() []mirror.Sync {
	var all []mirror.Sync
	for _, a := range w.areas.All() {
		all = append(all, a.status()...)
	}
	return all
}

func (w *Watch) isNeeded() bool {
	select {
	case <-w.needed:
		return true
	default:
		return false
	}
}

// holderChanged wakes the revisioned objects that the holder uses or used, or may have used.
func (w *Watch) holderChanged(old, now *lineage.Holder) {
	for _, h := range []*lineage.Holder{old, now} {
		if h == nil {
			continue
		}
		a, known := w.areas.Of(h.Namespace)
		if !known {
			continue
		}
		if h.TooLarge {
			a.eachObjectIn(h.Namespace, func(o *Owned) { w.wake(a, o.Key) })
		}
		for _, source := range h.Uses {
			key := ObjectKey{Namespace: h.Namespace, Source: source}
			if _, revisioned := w.Object(key); revisioned {
				w.wake(a, key)
			}
		}
	}
}

// wake queues an object for a decision. Changes before its area opens are handled when it opens.
// After its area was closed, the decision doesn't find the object and forgets it.
func (w *Watch) wake(a *area, key ObjectKey) {
	w.mu.RLock()
	add := w.add
	w.mu.RUnlock()
	if add != nil && !a.isLearning() {
		add(key)
	}
}

// uses is the index from objects to the living revisions that use them.
type uses struct {
	mu sync.RWMutex
	by map[ObjectKey]map[string]*lineage.Holder
	// large has those without an entry there: they name too many objects. By namespace and UID.
	large map[string]map[string]*lineage.Holder
}

func newUses() *uses {
	return &uses{by: map[ObjectKey]map[string]*lineage.Holder{}, large: map[string]map[string]*lineage.Holder{}}
}

func (u *uses) tooLarge(namespace string) []*lineage.Holder {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return slices.Collect(maps.Values(u.large[namespace]))
}

func (u *uses) of(key ObjectKey) []*lineage.Holder {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return slices.Collect(maps.Values(u.by[key]))
}

// replace removes the old copy and adds the new one. Either may be nil.
func (u *uses) replace(old, now *lineage.Holder) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old != nil {
		drop(u.large, old.Namespace, old.UID)
		for _, source := range old.Uses {
			drop(u.by, ObjectKey{old.Namespace, source}, old.UID)
		}
	}
	if now == nil || !now.Holds() {
		return
	}
	if now.TooLarge {
		put(u.large, now.Namespace, now)
	}
	for _, source := range now.Uses {
		put(u.by, ObjectKey{now.Namespace, source}, now)
	}
}

func put[K comparable](in map[K]map[string]*lineage.Holder, key K, h *lineage.Holder) {
	if in[key] == nil {
		in[key] = map[string]*lineage.Holder{}
	}
	in[key][h.UID] = h
}

func drop[K comparable](from map[K]map[string]*lineage.Holder, key K, uid string) {
	delete(from[key], uid)
	if len(from[key]) == 0 {
		delete(from, key)
	}
}
