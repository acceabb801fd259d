package lineage

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// OwnershipOptions say what an Ownership watches.
type OwnershipOptions struct {
	// Kinds of workloads, whose revisions may hold objects.
	Kinds []kube.Kind
	// Namespaces to watch; none means all of them.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
	// Report is called when a resource can be followed, or no longer.
	Report func(mirror.Status)
	// Ready, when it is set, says whether everything else is known that decisions
	// depend on. Until then nothing is fed.
	Ready func() bool
}

// Ownership knows the revisioned objects of a cluster and everything that may
// hold them. Revisions are watched only from the first revisioned object on: a
// cluster without any pays for two empty watches.
type Ownership struct {
	client  client.WithWatch
	options OwnershipOptions
	objects map[input.Kind]map[string]*mirror.Mirror[*Owned]
	holders map[string]map[string]*mirror.Mirror[*Holder]
	used    *uses

	needed  chan struct{} // closed when there is a revisioned object
	setNeed func()

	mu       sync.RWMutex
	started  bool // the revisions are watched
	wakes    []func(ObjectKey)
	statuses map[mirror.Role][]func() mirror.Status
}

// NewOwnership makes an Ownership that is empty until Run.
func NewOwnership(c client.WithWatch, o OwnershipOptions) *Ownership {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{corev1.NamespaceAll}
	}
	w := &Ownership{
		client: c, options: o, used: newUses(), needed: make(chan struct{}),
		objects:  map[input.Kind]map[string]*mirror.Mirror[*Owned]{},
		holders:  map[string]map[string]*mirror.Mirror[*Holder]{},
		statuses: map[mirror.Role][]func() mirror.Status{},
	}
	w.setNeed = sync.OnceFunc(func() { close(w.needed) })
	for _, kind := range []input.Kind{input.KindConfigMap, input.KindSecret} {
		slim := func(object any) (*Owned, error) { return slimOwned(kind, object) }
		w.objects[kind] = map[string]*mirror.Mirror[*Owned]{}
		for _, ns := range o.Namespaces {
			w.objects[kind][ns] = inSight(w, mirror.RoleSource, mirror.Options[*Owned]{
				Name: "revisioned " + kube.ResourceName(string(kind), ns), Slim: slim, Changed: w.objectChanged,
			})
		}
	}
	for kind, h := range w.holderKinds() {
		w.holders[kind] = map[string]*mirror.Mirror[*Holder]{}
		for _, ns := range o.Namespaces {
			w.holders[kind][ns] = inSight(w, mirror.RoleWorkload, mirror.Options[*Holder]{
				Name: kube.ResourceName(kind, ns), Slim: h.slim, Indexed: w.used.replace, Changed: w.holderChanged,
			})
		}
	}
	return w
}

// holderKind is a kind that holds objects.
type holderKind struct {
	list client.ObjectList
	slim func(object any) (*Holder, error)
}

// holderKinds are the kinds that hold objects: revisions, and workloads that are
// revisions themselves.
func (w *Ownership) holderKinds() map[string]holderKind {
	all := map[string]holderKind{}
	for _, kind := range w.options.Kinds {
		sort := kind.Revisions
		all[sort.Kind] = holderKind{sort.NewList(), func(o any) (*Holder, error) { return slimRevision(sort, w.options.Kinds, o) }}
		if sort.Transient {
			all[kind.Kind] = holderKind{kind.NewList(), func(object any) (*Holder, error) {
				o, err := kind.Read(object)
				if err != nil {
					return nil, err
				}
				return slimWorkload(kind, o)
			}}
		}
	}
	return all
}

// inSight makes a mirror that the ownership tells of. To the process as a whole
// none of these is vital, so they all count as settings there.
func inSight[T mirror.Slim[T]](w *Ownership, role mirror.Role, o mirror.Options[T]) *mirror.Mirror[T] {
	o.Role, o.Report, o.Now = mirror.RoleSettings, w.options.Report, w.options.Now
	m := mirror.New(o)
	w.statuses[role] = append(w.statuses[role], m.Status)
	return m
}

// Run keeps the ownership in step until the context ends, and returns when all
// its watches have ended.
func (w *Ownership) Run(ctx context.Context) {
	var group sync.WaitGroup
	for kind, mirrors := range w.objects {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		for ns, m := range mirrors {
			group.Go(func() {
				m.Run(ctx, w.client, mirror.Scope{List: list, Namespace: ns, Selector: labels.SelectorFromSet(labels.Set{settings.Revisioned: "true"})})
			})
		}
	}
	select {
	case <-ctx.Done():
	case <-w.needed:
		w.runHolders(ctx, &group)
	}
	group.Wait()
}

func (w *Ownership) runHolders(ctx context.Context, group *sync.WaitGroup) {
	w.mu.Lock()
	w.started = true
	w.mu.Unlock()
	for kind, h := range w.holderKinds() {
		for ns, m := range w.holders[kind] {
			group.Go(func() { m.Run(ctx, w.client, mirror.Scope{List: h.list, Namespace: ns}) })
		}
	}
}

// Needed is closed when there is, or was, a revisioned object.
func (w *Ownership) Needed() <-chan struct{} {
	return w.needed
}

// Feed calls add with every revisioned object that has to be looked at: once
// each, as soon as everything is known, and then when something happened to it or
// to a revision that uses it. It returns when the context ends.
func (w *Ownership) Feed(ctx context.Context, add func(ObjectKey)) {
	select {
	case <-ctx.Done():
		return
	case <-w.needed:
	}
	known := func(context.Context) (bool, error) { return w.answered(), nil }
	if wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, known) != nil {
		return
	}
	w.mu.Lock()
	w.wakes = append(w.wakes, add)
	w.mu.Unlock()
	w.eachObject(func(o *Owned) { add(o.Key) })
	<-ctx.Done()
}

// Object returns the copy of a revisioned object.
func (w *Ownership) Object(key ObjectKey) (*Owned, bool) {
	m, ok := mirrorOf(w.objects[key.Source.Kind], key.Namespace)
	if !ok {
		return nil, false
	}
	return m.Get(key.Namespace, key.Source.Name)
}

// Users returns the living revisions that use an object, by name.
func (w *Ownership) Users(key ObjectKey) []*Holder {
	found := w.used.of(key)
	slices.SortFunc(found, func(a, b *Holder) int { return cmp.Compare(a.String(), b.String()) })
	return found
}

// UnreadableKinds names the kinds of revisions that cannot be read in a namespace now, for
// want of a permission or of an answer: an object may have users that we cannot see.
func (w *Ownership) UnreadableKinds(namespace string) []string {
	var unreadable []string
	for kind, mirrors := range w.holders {
		if m, ok := mirrorOf(mirrors, namespace); ok && !m.Status().Works() {
			unreadable = append(unreadable, kind)
		}
	}
	slices.Sort(unreadable)
	return unreadable
}

// Status tells how well each resource that is needed now can be followed.
func (w *Ownership) Status() []mirror.Status {
	w.mu.RLock()
	roles := []mirror.Role{mirror.RoleSource}
	if w.started {
		roles = append(roles, mirror.RoleWorkload)
	}
	w.mu.RUnlock()
	var all []mirror.Status
	for _, role := range roles {
		for _, status := range w.statuses[role] {
			all = append(all, status())
		}
	}
	return all
}

// answered reports whether the API server has said of every revision and object
// what there is to know, or could not be made to: one kind that cannot be listed,
// for however long, holds up nobody else. Before the first object that is never so.
func (w *Ownership) answered() bool {
	w.mu.RLock()
	started := w.started
	w.mu.RUnlock()
	if w.options.Ready != nil && !w.options.Ready() {
		return false
	}
	return started && !slices.ContainsFunc(w.Status(), func(s mirror.Status) bool { return !s.Answered() && !s.Broken() })
}

// mirrorOf returns the mirror of a namespace, or that of all.
func mirrorOf[T mirror.Slim[T]](mirrors map[string]*mirror.Mirror[T], namespace string) (*mirror.Mirror[T], bool) {
	if m, ok := mirrors[namespace]; ok {
		return m, true
	}
	m, ok := mirrors[corev1.NamespaceAll]
	return m, ok
}

func (w *Ownership) eachObject(visit func(*Owned)) {
	for _, mirrors := range w.objects {
		for _, m := range mirrors {
			m.Each(visit)
		}
	}
}

func (w *Ownership) objectChanged(old, now *Owned) {
	w.setNeed()
	if now == nil {
		w.wake(old.Key)
		return
	}
	w.wake(now.Key)
}

// holderChanged wakes the revisioned objects that the holder uses or used.
func (w *Ownership) holderChanged(old, now *Holder) {
	for _, h := range []*Holder{old, now} {
		if h == nil {
			continue
		}
		for _, source := range h.Uses {
			key := ObjectKey{Namespace: h.Namespace, Source: source}
			if _, revisioned := w.Object(key); revisioned {
				w.wake(key)
			}
		}
	}
}

func (w *Ownership) wake(key ObjectKey) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, f := range w.wakes {
		f(key)
	}
}

// uses is the index from objects to the living revisions that use them.
type uses struct {
	mu sync.RWMutex
	by map[ObjectKey]map[string]*Holder
}

func newUses() *uses {
	return &uses{by: map[ObjectKey]map[string]*Holder{}}
}

func (u *uses) of(key ObjectKey) []*Holder {
	u.mu.RLock()
	defer u.mu.RUnlock()
	found := make([]*Holder, 0, len(u.by[key]))
	for _, h := range u.by[key] {
		found = append(found, h)
	}
	return found
}

// replace takes out the old copy and puts in the new one. Either may be nil.
func (u *uses) replace(old, now *Holder) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old != nil {
		for _, source := range old.Uses {
			key := ObjectKey{old.Namespace, source}
			delete(u.by[key], old.UID)
			if len(u.by[key]) == 0 {
				delete(u.by, key)
			}
		}
	}
	if now == nil || !now.Holds() {
		return
	}
	for _, source := range now.Uses {
		key := ObjectKey{now.Namespace, source}
		if u.by[key] == nil {
			u.by[key] = map[string]*Holder{}
		}
		u.by[key][now.UID] = now
	}
}
