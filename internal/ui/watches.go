package ui

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/feature/ask"
)

// watches keep the headers of the workloads, and notice what the controller writes. They ask only
// for metadata: the contents of ConfigMaps don't get here.
type watches struct {
	client client.WithWatch
	scope  ask.Scope
	// own is the controller's namespace.
	own string
	now func() time.Time
	// changed is called with the namespace of every change, empty for one that matters
	// everywhere. decides is true if the overview may be another one.
	changed func(namespace string, decides bool)

	mu      sync.Mutex
	mirrors map[schema.GroupKind]*mirror.Mirror[*copied]
	running sync.WaitGroup
}

// copied is what is kept of an object.
type copied struct {
	meta metav1.ObjectMeta
	// header is empty for other objects than workloads.
	header cluster.Header
}

// GetObjectMeta implements mirror.Slim.
func (c *copied) GetObjectMeta() metav1.Object { return &c.meta }

// SameAs implements mirror.Slim. For other objects than workloads every write counts.
func (c *copied) SameAs(old *copied) bool {
	return c.header.UID != "" && c.header.UID == old.header.UID && maps.Equal(c.header.Annotations, old.header.Annotations)
}

// slim copies metadata, and the header if it is a workload's.
func slim(kind *kube.Kind) func(any) (*copied, error) {
	return func(object any) (*copied, error) {
		o, err := meta.Accessor(object)
		if err != nil {
			return nil, err
		}
		c := &copied{meta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
		if kind != nil {
			c.header = cluster.HeaderOf(*kind, o)
		}
		return c, nil
	}
}

// start begins to watch what the controller writes: the record, the kill switch and its events.
func (w *watches) start(ctx context.Context) {
	configMaps, events := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Event")
	everywhere := func(_, _ *copied) { w.changed("", true) }
	for name, scope := range map[string]mirror.Scope{
		"record":      {List: metadataOf(configMaps), Namespace: w.own, Selector: labels.SelectorFromSet(labels.Set{settings.StateLabel: "true"})},
		"kill switch": {List: metadataOf(configMaps), Namespace: w.own, Name: settings.StopName},
	} {
		w.run(ctx, mirror.New(mirror.Options[*copied]{Name: name, Slim: slim(nil), Changed: everywhere, Now: w.now}), scope)
	}
	w.run(ctx, mirror.New(mirror.Options[*copied]{
		Name: "events", Slim: slim(nil), Now: w.now,
		Changed: func(old, now *copied) { w.changed(namespaceOf(old, now), true) },
	}), mirror.Scope{List: metadataOf(events), Namespace: w.scope.Namespace, Fields: fields.OneTermEqualSelector("reportingComponent", announce.Reporter)})
}

// look calls changed for every change of a ConfigMap, a Secret or the settings of a namespace, and
// for every event about an object there, while a page about it is open. These are four watches a page,
// and mostLives limits the pages.
func (w *watches) look(ctx context.Context, looking *sync.WaitGroup, namespace, name string, changed func()) {
	kind := corev1.SchemeGroupVersion.WithKind
	scopes := []mirror.Scope{
		{List: metadataOf(kind("ConfigMap")), Namespace: namespace},
		{List: metadataOf(kind("Secret")), Namespace: namespace},
		{List: metadataOf(kind("Namespace")), Name: namespace},
	}
	if name != "" {
		scopes = append(scopes, mirror.Scope{List: metadataOf(kind("Event")), Namespace: namespace, Fields: fields.OneTermEqualSelector("involvedObject.name", name)})
	}
	for _, scope := range scopes {
		m := mirror.New(mirror.Options[*copied]{Name: "sources", Slim: slim(nil), Now: w.now, Changed: func(_, _ *copied) { changed() }})
		looking.Go(func() { m.Run(ctx, w.client, scope) })
	}
}

// follow watches the workloads of further kinds.
func (w *watches) follow(ctx context.Context, kinds []kube.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		if w.mirrors[kind.GroupKind()] != nil {
			continue
		}
		m := w.mirrorOf(kind)
		w.mirrors[kind.GroupKind()] = m
		list := metadataOf(kind.GroupVersion().WithKind(kind.Kind))
		w.run(ctx, m, mirror.Scope{List: list, Namespace: w.scope.Namespace, Selector: w.scope.Selector})
	}
}

func (w *watches) mirrorOf(kind kube.Kind) *mirror.Mirror[*copied] {
	return mirror.New(mirror.Options[*copied]{
		Name: kind.ResourceName(w.scope.Namespace), Role: mirror.RoleWorkload, Slim: slim(&kind), Now: w.now,
		Changed: func(old, now *copied) { w.changed(namespaceOf(old, now), true) },
		// A page of a workload shows more than its header.
		Seen:   func(_, now *copied) { w.changed(now.meta.Namespace, false) },
		Report: func(mirror.Sync) { w.changed("", true) },
	})
}

func (w *watches) run(ctx context.Context, m *mirror.Mirror[*copied], scope mirror.Scope) {
	w.running.Go(func() { m.Run(ctx, w.client, scope) })
}

// headers are those of all workloads. Notes list what can't be read, and err is the reason if
// nothing can be. whole is false while an answer is missing.
func (w *watches) headers() (all []cluster.Header, notes []string, whole bool, err error) {
	whole = true
	var denied error
	listed := false
	for _, m := range w.all() {
		s := m.Status()
		whole = whole && (s.Answered() || isAnswer(s.Err))
		listed = listed || s.Synced
		if isAnswer(s.Err) && !s.NotInstalled() && !isExpired(s.Err) {
			notes, denied = append(notes, s.Err.Error()), errors.Join(denied, s.Err)
		}
		m.Each(func(c *copied) { all = append(all, c.header) })
	}
	if !listed {
		err = w.scope.Denied(denied)
	}
	return all, notes, whole, err
}

// problem is why a kind of workload can't be watched now, nil while nothing is wrong. A missing
// permission isn't a problem of the moment.
func (w *watches) problem() error {
	for _, m := range w.all() {
		if s := m.Status(); s.Err != nil && !s.NotInstalled() && !isAnswer(s.Err) {
			return s.Err
		}
	}
	return nil
}

// isAnswer reports whether the API server answered with the error: a refusal, for example, or the
// failure of a kind's webhook, that stays for long and concerns only some workloads.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (!isUnanswered(err) || status.Status().Code == http.StatusInternalServerError)
}

// isExpired reports whether a watch only has to start again.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// all are the mirrors of the workloads.
func (w *watches) all() []*mirror.Mirror[*copied] {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*mirror.Mirror[*copied], 0, len(w.mirrors))
	for _, kind := range sorting.Keys(w.mirrors, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }) {
		all = append(all, w.mirrors[kind])
	}
	return all
}

func namespaceOf(old, now *copied) string {
	if now != nil {
		return now.meta.Namespace
	}
	return old.meta.Namespace
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
