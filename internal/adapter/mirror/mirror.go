// Package mirror keeps slim copies of one resource's objects in sync with the API server. Copies
// are made on arrival, so a ConfigMap of a megabyte costs only its keys and their digests, and a
// Secret's values don't outlive the decoding of their event.
package mirror

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Slim is the part of an API object that a mirror keeps.
type Slim[T any] interface {
	metav1.ObjectMetaAccessor
	// SameAs reports whether the copies are equal in everything that matters.
	SameAs(old T) bool
}

// Tracked is a Slim that knows more than one copy of an object shows: when its content changed,
// for example.
type Tracked[T any] interface {
	// Follow takes over the history of the previous copy.
	Follow(old T, how Arrival)
	// First is called instead of Follow on a copy without a previous one.
	First(how Arrival)
}

// Arrival describes how an object arrived.
type Arrival struct {
	At time.Time
	// Watched is true for a watch event, since a watch reports every write; false for a list,
	// since anything may have happened between two lists.
	Watched bool
	// ListVersion is the resource version of the list, and Since the one up to which the mirror
	// was in sync before it, empty for the first list.
	ListVersion, Since string
}

// Options configure how a mirror copies its objects and which callbacks it calls.
type Options[T Slim[T]] struct {
	// Name of the resource for users: "deployments" or "secrets in shop".
	Name string
	// Role is what the resource is needed for.
	Role Role
	// Slim makes the copy that is kept.
	Slim func(object any) (T, error)
	// Changed, if set, is called after each change that matters, with the zero value for a side
	// that does not exist, outside any lock. It is for waking: after a list it is called once
	// the list counts as complete.
	Changed func(old, now T)
	// Indexed, if set, is called like Changed and before it. It is for indexes: after a list it
	// is called for all objects before the list counts as complete, so a complete list implies a
	// complete index.
	Indexed func(old, now T)
	// Seen, if set, is called with each new copy of a known object, even when nothing relevant
	// changed. It must return quickly.
	Seen func(old, now T)
	// Report, if set, is called when the watch starts or stops working.
	Report func(Sync)
	// Now is the clock.
	Now func() time.Time
}

// Mirror keeps slim copies of one resource's objects in sync with the API server, through a
// client-go reflector. It is the reflector's store: copies are made on arrival, even while a
// list streams in, so the full objects are never all in memory at once.
type Mirror[T Slim[T]] struct {
	options Options[T]
	link    link

	mu    sync.RWMutex
	items items[T]
	// version is the resource version up to which the items are in sync.
	version string

	// refusals counts consecutive refusals.
	refusals atomic.Int32
}

// New makes a mirror that is empty until Run.
func New[T Slim[T]](o Options[T]) *Mirror[T] {
	ignore := func(T, T) {}
	if o.Indexed == nil {
		o.Indexed = ignore
	}
	if o.Changed == nil {
		o.Changed = ignore
	}
	if o.Seen == nil {
		o.Seen = ignore
	}
	m := &Mirror[T]{options: o, items: items[T]{}}
	if o.Report != nil {
		m.link.changed = func() { o.Report(m.Status()) }
	}
	return m
}

// Scope is the set of objects that a mirror reads from the API server.
type Scope struct {
	List      client.ObjectList
	Namespace string
	Selector  labels.Selector
	// Name narrows the scope to one object.
	Name string
	// Fields narrows the scope to objects with these fields; nil means any.
	Fields fields.Selector
}

// Run keeps the mirror in sync until the context ends. It keeps retrying, with back-off, when
// permissions are missing or kinds aren't installed.
func (m *Mirror[T]) Run(ctx context.Context, c client.WithWatch, sc Scope) {
	options := func(raw *metav1.ListOptions) client.ListOption {
		o := &client.ListOptions{Raw: raw, Namespace: sc.Namespace, LabelSelector: sc.Selector, FieldSelector: sc.Fields}
		if sc.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", sc.Name)
		}
		return o
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all, err := m.listAll(ctx, c, sc.List.DeepCopyObject().(client.ObjectList), options(nil))
			if err != nil {
				err = m.link.report(err)
				m.restAfter(ctx, err)
				return nil, err
			}
			m.refusals.Store(0)
			return all, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := openWatch(ctx, func(ctx context.Context) (watch.Interface, error) {
				return c.Watch(ctx, sc.List.DeepCopyObject().(client.ObjectList), options(&o))
			})
			if isStream(o) && apierrors.IsInvalid(err) {
				return nil, err // This API server doesn't support streams; a list and a plain watch follow.
			}
			return w, m.link.report(err)
		},
	}
	// The reflector logs each failed attempt; the link reports each change instead.
	silent := logr.Discard()
	reflector := cache.NewReflectorWithOptions(lw, nil, m, cache.ReflectorOptions{Name: m.options.Name, TypeDescription: m.options.Name, Logger: &silent, Backoff: afterOutage()})
	reflector.RunWithContext(logr.NewContext(ctx, silent))
}

// isStream reports whether a watch is requested to begin with a list.
func isStream(o metav1.ListOptions) bool {
	return o.SendInitialEvents != nil && *o.SendInitialEvents
}

// Get returns the copy of one object.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	item, ok := m.items[namespace][name]
	return item, ok
}

// Each calls visit for every copy.
func (m *Mirror[T]) Each(visit func(T)) {
	m.mu.RLock()
	all := make([]T, 0, m.items.len())
	for _, names := range m.items {
		all = slices.AppendSeq(all, maps.Values(names))
	}
	m.mu.RUnlock()
	for _, item := range all {
		visit(item)
	}
}

// EachIn calls visit for every copy in one namespace.
func (m *Mirror[T]) EachIn(namespace string, visit func(T)) {
	m.mu.RLock()
	all := slices.Collect(maps.Values(m.items[namespace]))
	m.mu.RUnlock()
	for _, item := range all {
		visit(item)
	}
}

// Status reports how well the resource can be watched.
//
//go:noinline
func (m *Mirror[T]) Status() Sync {
	s := m.link.status()
	s.Resource, s.Role = m.options.Name, m.options.Role
	return s
}

// Version is the resource version up to which the copies are in sync, empty before the first list.
func (m *Mirror[T]) Version() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.version
}

// Len is the number of copies.
func (m *Mirror[T]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.items.len()
}

// Transformer implements cache.TransformingStore: the reflector calls it on each
// object of a streaming list as it arrives.
func (m *Mirror[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return m.copyOf(object) }
}

// copyOf returns the slim copy of an object, or the one made earlier.
func (m *Mirror[T]) copyOf(object any) (T, error) {
	switch o := object.(type) {
	case T:
		return o, nil
	case *listed[T]:
		return o.item, nil
	}
	return m.options.Slim(object)
}

// Add implements cache.ReflectorStore.
func (m *Mirror[T]) Add(object any) error {
	return m.Update(object)
}

// Update implements cache.ReflectorStore. An unreadable object is treated as deleted; a single
// odd object must not stop the watch of its kind.
func (m *Mirror[T]) Update(object any) error {
	item, err := m.options.Slim(object)
	if err != nil {
		return m.Delete(object)
	}
	key := nameOf(item)
	m.mu.Lock()
	old, known := m.items[key.Namespace][key.Name]
	settle(item, old, known, Arrival{At: m.options.Now(), Watched: true})
	m.items.put(key, item)
	m.mu.Unlock()
	m.notify(old, item, known)
	return nil
}

// Delete implements cache.ReflectorStore.
func (m *Mirror[T]) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	m.mu.Lock()
	old, known := m.items[key.Namespace][key.Name]
	m.items.remove(key)
	m.mu.Unlock()
	if known {
		var none T
		m.tell(old, none)
	}
	return nil
}

// Replace implements cache.ReflectorStore with the result of a list. Objects that aren't in the
// list are gone.
func (m *Mirror[T]) Replace(objects []any, version string) error {
	fresh := items[T]{}
	for i, object := range objects {
		item, err := m.copyOf(object)
		if err != nil {
			continue
		}
		fresh.put(nameOf(item), item)
		objects[i] = nil
	}
	m.mu.Lock()
	how := Arrival{At: m.options.Now(), ListVersion: version, Since: m.version}
	before := m.items
	m.version = version
	for namespace, names := range fresh {
		for name, item := range names {
			old, known := before[namespace][name]
			settle(item, old, known, how)
		}
	}
	m.items = fresh // Only the reflector's goroutine changes it, so reading on is safe.
	m.mu.Unlock()
	eachDifference(before, fresh, m.options.Indexed)
	// Woken callers immediately check whether this list is complete.
	m.link.synced()
	eachDifference(before, fresh, m.options.Changed)
	eachKept(before, fresh, m.options.Seen)
	return nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater: the watch has reported all
// writes up to that version.
func (m *Mirror[T]) UpdateResourceVersion(version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version = version
}

// Resync implements cache.ReflectorStore; it isn't needed here.
func (m *Mirror[T]) Resync() error {
	return nil
}

// settle compares the item with its previous copy, if there is one.
func settle[T Slim[T]](item, old T, known bool, how Arrival) {
	tracked, ok := any(item).(Tracked[T])
	switch {
	case !ok:
	case known:
		tracked.Follow(old, how)
	default:
		tracked.First(how)
	}
}

func (m *Mirror[T]) notify(old, item T, known bool) {
	if !known || !item.SameAs(old) {
		m.tell(old, item)
	}
	if known {
		m.options.Seen(old, item)
	}
}

func (m *Mirror[T]) tell(old, now T) {
	m.options.Indexed(old, now)
	m.options.Changed(old, now)
}

func nameOf[T Slim[T]](item T) types.NamespacedName {
	m := item.GetObjectMeta()
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}
