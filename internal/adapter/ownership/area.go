package ownership

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// area is what is watched in one namespace, or in all of them together.
type area struct {
	ownership *Watch
	namespace string
	objects   []watched
	// sorts and revisions are by the name of their kind.
	sorts     map[string]kube.Revisions
	revisions map[string]*mirror.Mirror[*lineage.Holder]
	phase     atomic.Int32
}

// watched are the revisioned objects of one kind, in one namespace or in all of them.
type watched struct {
	*mirror.Mirror[*Owned]

	kind      input.Kind
	namespace string
}

// The phases of an area, in their order.
const (
	// learning: the objects cannot be decided on yet.
	learning int32 = iota
	// open: they can.
	open
	// closed: the namespace is no longer to be watched, and nothing in it is decided on.
	closed
)

func newArea(w *Watch, namespace string) *area {
	a := &area{
		ownership: w, namespace: namespace,
		sorts: map[string]kube.Revisions{}, revisions: map[string]*mirror.Mirror[*lineage.Holder]{},
	}
	a.watchObjects(input.KindConfigMap, namespace)
	for _, ns := range w.options.SecretsIn(namespace) {
		a.watchObjects(input.KindSecret, ns)
	}
	for _, kind := range w.cache.Kinds() {
		sort := kind.Revisions
		if _, again := a.sorts[sort.Kind]; again {
			continue
		}
		a.sorts[sort.Kind] = sort
		a.revisions[sort.Kind] = mirror.New(mirror.Options[*lineage.Holder]{
			Name: kube.ResourceName(sort.Kind, namespace), Role: mirror.RoleSettings,
			Slim:    func(object any) (*lineage.Holder, error) { return lineage.NewHolder(sort, w.cache.Kinds(), object) },
			Indexed: w.used.replace, Changed: w.holderChanged,
			Report: w.options.Report, Now: w.options.Now,
		})
	}
	return a
}

// watchObjects adds the revisioned objects of a kind. To the process as a whole nothing
// that an area watches is vital, so all of it counts as settings.
func (a *area) watchObjects(kind input.Kind, namespace string) {
	o := a.ownership.options
	a.objects = append(a.objects, watched{kind: kind, namespace: namespace, Mirror: mirror.New(mirror.Options[*Owned]{
		Name: "revisioned " + kube.ResourceName(string(kind), namespace), Role: mirror.RoleSettings,
		Slim:    func(object any) (*Owned, error) { return slimOwned(kind, object) },
		Changed: a.objectChanged, Report: o.Report, Now: o.Now,
	})})
}

// object returns the copy of a revisioned object.
func (a *area) object(key ObjectKey) (*Owned, bool) {
	for _, w := range a.objects {
		if w.kind == key.Source.Kind && (w.namespace == corev1.NamespaceAll || w.namespace == key.Namespace) {
			return w.Get(key.Namespace, key.Source.Name)
		}
	}
	return nil, false
}

// Run implements cluster.Stay.
func (a *area) Run(ctx context.Context, c client.WithWatch) {
	var group sync.WaitGroup
	for _, w := range a.objects {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(w.kind) + "List"))
		group.Go(func() {
			w.Run(ctx, c, mirror.Scope{List: list, Namespace: w.namespace, Selector: labels.SelectorFromSet(labels.Set{settings.Revisioned: "true"})})
		})
	}
	select {
	case <-ctx.Done():
	case <-a.ownership.needed:
		for kind, m := range a.revisions {
			group.Go(func() { m.Run(ctx, c, mirror.Scope{List: a.sorts[kind].NewList(), Namespace: a.namespace}) })
		}
	}
	group.Wait()
}

// Close implements cluster.Stay. From here on no object of the area is found, so that
// what the watches still bring, and what Leave takes out, leads to no decision.
func (a *area) Close() {
	a.phase.Store(closed)
	a.ownership.areas.Remove(a.namespace, a)
}

// Leave implements cluster.Stay. Objects are taken out one by one, so that whoever
// counts them hears of it.
func (a *area) Leave() {
	for _, m := range a.revisions {
		clearMirror(m)
	}
	for _, w := range a.objects {
		clearMirror(w.Mirror)
	}
}

// clearMirror takes everything out of a mirror. One that is empty may never have been
// listed, and must not count as that.
func clearMirror[T mirror.Slim[T]](m *mirror.Mirror[T]) {
	if m.Len() > 0 {
		_ = m.Replace(nil, "")
	}
}

func (a *area) isLearning() bool { return a.phase.Load() == learning }

func (a *area) isOpen() bool { return a.phase.Load() == open }

// setOpen reports whether the area is open now and was not before. One that was closed
// meanwhile stays closed.
func (a *area) setOpen() bool { return a.phase.CompareAndSwap(learning, open) }

// answered reports whether the API server has said of every revision and object
// what there is to know, or could not be made to: one kind that cannot be listed,
// for however long, holds up no other. Before the first object that is never so.
func (a *area) answered() bool {
	if !a.ownership.isNeeded() {
		return false
	}
	all := slices.AppendSeq(a.objectStatus(), maps.Values(a.holderStatus()))
	return !slices.ContainsFunc(all, func(s mirror.Sync) bool { return !s.Answered() && !s.Broken() })
}

// status tells how well each resource that is needed now can be followed.
func (a *area) status() []mirror.Sync {
	all := a.objectStatus()
	if !a.ownership.isNeeded() {
		return all
	}
	for _, kind := range slices.Sorted(maps.Keys(a.revisions)) {
		all = append(all, a.revisions[kind].Status())
	}
	return all
}

func (a *area) objectStatus() []mirror.Sync {
	all := make([]mirror.Sync, 0, len(a.objects))
	for _, w := range a.objects {
		all = append(all, w.Status())
	}
	return all
}

// holderStatus tells by kind how well everything can be followed that may hold an
// object.
func (a *area) holderStatus() map[string]mirror.Sync {
	all := map[string]mirror.Sync{}
	for kind, m := range a.revisions {
		all[kind] = m.Status()
	}
	for _, kind := range a.ownership.cache.Kinds() {
		if status, watched := a.ownership.cache.KindStatus(kind.GroupKind(), a.namespace); watched && kind.Revisions.Transient {
			all[kind.Kind] = status
		}
	}
	return all
}

func (a *area) eachObject(visit func(*Owned)) {
	for _, w := range a.objects {
		w.Each(visit)
	}
}

func (a *area) objectChanged(old, now *Owned) {
	a.ownership.setNeed()
	if now == nil {
		a.ownership.wake(a, old.Key)
		return
	}
	a.ownership.wake(a, now.Key)
}
