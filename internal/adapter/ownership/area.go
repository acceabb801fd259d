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

// area holds the watches in one namespace, or in all of them together.
type area struct {
	ownership *Watch
	namespace string
	objects   []watched
	// sorts and revisions are by the name of their kind.
	sorts     map[string]kube.Revisions
	revisions map[string]*mirror.Mirror[*lineage.Holder]
	phase     atomic.Int32
}

// watched holds the revisioned objects of one kind, in one namespace or in all of them.
type watched struct {
	*mirror.Mirror[*Owned]

	kind      input.Kind
	namespace string
}

// The phases of an area, in their order.
const (
	// learning: the objects cannot be decided on yet.
	learning int32 = iota
	// open: the objects can be decided on.
	open
	// closed: the namespace is no longer watched, and its objects aren't decided on.
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
			Slim: func(object any) (*lineage.Holder, error) {
				h, err := lineage.NewHolder(sort, w.cache.Kinds(), object)
				if err == nil {
					h.Bound()
				}
				return h, err
			},
			Indexed: w.used.replace, Changed: w.holderChanged,
			Report: w.options.Report, Now: w.options.Now,
		})
	}
	return a
}

// watchObjects adds the revisioned objects of a kind. The process can run without the watches of
// an area, so all of them have the role of settings.
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

// Close implements cluster.Stay. From here on the area's objects aren't found, so events from
// the watches, and removals by Leave, don't lead to decisions.
func (a *area) Close() {
	a.phase.Store(closed)
	a.ownership.areas.Remove(a.namespace, a)
}

// Leave implements cluster.Stay. It removes objects one by one, so counters of objects are
// notified.
func (a *area) Leave() {
	for _, m := range a.revisions {
		clearMirror(m)
	}
	for _, w := range a.objects {
		clearMirror(w.Mirror)
	}
}

// clearMirror empties a mirror. An empty mirror may never have been listed, and must not count
// as listed.
func clearMirror[T mirror.Slim[T]](m *mirror.Mirror[T]) {
	if m.Len() > 0 {
		_ = m.Replace(nil, "")
	}
}

func (a *area) isLearning() bool { return a.phase.Load() == learning }

func (a *area) isOpen() bool { return a.phase.Load() == open }

// setOpen opens the area and reports whether it was learning before. A closed area stays closed.
func (a *area) setOpen() bool { return a.phase.CompareAndSwap(learning, open) }

// answered reports whether every kind of revision and object has been listed, or has failed to
// list: a kind that cannot be listed doesn't block the others. It is false before the first
// revisioned object.
func (a *area) answered() bool {
	if !a.ownership.isNeeded() {
		return false
	}
	all := slices.AppendSeq(a.objectStatus(), maps.Values(a.holderStatus()))
	return !slices.ContainsFunc(all, func(s mirror.Sync) bool { return !s.Answered() && !s.Broken() })
}

// status reports how well each resource that is needed now can be watched.
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

// holderStatus reports by kind how well each kind that may hold an object can be watched.
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

func (a *area) eachObjectIn(namespace string, visit func(*Owned)) {
	for _, w := range a.objects {
		w.EachIn(namespace, visit)
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
