package cluster

import (
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// area is the set of mirrors of one namespace, or of all of them together.
type area struct {
	namespace string
	kinds     []kube.Kind
	selector  labels.Selector // of workloads
	sources   map[input.Kind]*mirror.Mirror[*kube.Source]
	workloads map[schema.GroupKind]*mirror.Mirror[*kube.Workload]
	// names are those of the sources.
	names names
	// stays are the watches of guests.
	stays []Stay

	// before is closed when the namespace's previous watches have ended. They clear their
	// workloads from the index by name, so they must finish first.
	before  <-chan struct{}
	ended   chan struct{}
	endOnce sync.Once
	gone    chan struct{}
}

func newArea(c *Cache, namespace string) *area {
	a := &area{
		namespace: namespace,
		kinds:     c.options.Kinds,
		selector:  c.options.Workloads,
		sources:   map[input.Kind]*mirror.Mirror[*kube.Source]{},
		workloads: map[schema.GroupKind]*mirror.Mirror[*kube.Workload]{},
		before:    closed(),
		ended:     make(chan struct{}),
		gone:      make(chan struct{}),
	}
	for _, kind := range c.options.Sources {
		a.sources[kind] = mirror.New(mirror.Options[*kube.Source]{
			Name: kube.ResourceName(string(kind), namespace), Role: mirror.RoleSource,
			Slim: c.slimSource, Changed: c.sourceChanged,
			Report: c.options.Report, Now: c.options.Now,
		})
	}
	for _, kind := range c.options.Kinds {
		a.workloads[kind.GroupKind()] = mirror.New(mirror.Options[*kube.Workload]{
			Name: kind.ResourceName(namespace), Role: mirror.RoleWorkload,
			Slim:    func(object any) (*kube.Workload, error) { return kube.SlimWorkload(kind, object, c.options.Vocabulary) },
			Changed: c.workloadChanged, Indexed: c.workloadIndexed, Seen: c.awaited.seen,
			Report: c.options.Report, Now: c.options.Now,
		})
	}
	for _, g := range c.guests {
		a.stays = append(a.stays, g.Enter(namespace))
	}
	return a
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// run keeps the mirrors in step until the context ends or the area is ended.
func (a *area) run(process context.Context, c client.WithWatch) {
	defer close(a.gone)
	<-a.before
	ctx, cancel := context.WithCancel(process)
	defer cancel()
	stop := context.AfterFunc(ctx, a.end)
	defer stop()
	var group sync.WaitGroup
	for kind, m := range a.sources {
		group.Go(func() { m.Run(ctx, c, mirror.Scope{List: kube.NewSourceList(kind), Namespace: a.namespace}) })
	}
	for _, kind := range a.kinds {
		m := a.workloads[kind.GroupKind()]
		group.Go(func() {
			m.Run(ctx, c, mirror.Scope{List: kind.NewList(), Namespace: a.namespace, Selector: a.selector})
		})
	}
	for _, s := range a.stays {
		group.Go(func() { s.Run(ctx, c) })
	}
	<-a.ended
	cancel()
	group.Wait()
	// When the process stops, the workloads still exist. Clearing here could make a loop that is
	// still running forget their records.
	if process.Err() == nil {
		a.clear()
	}
}

// leave ends the area of a namespace that is no longer watched. It closes the guests first:
// nothing may be decided on events that arrive while the watches end.
func (a *area) leave() {
	for _, s := range a.stays {
		s.Close()
	}
	a.end()
}

// end makes run return.
func (a *area) end() {
	a.endOnce.Do(func() { close(a.ended) })
}

// clear removes all workloads, so the index forgets them too. The record stays: if the namespace
// is watched again, Lockstep continues from there.
func (a *area) clear() {
	for _, m := range a.workloads {
		_ = m.Replace(nil, "")
	}
	for _, s := range a.stays {
		s.Leave()
	}
}

// status reports how well each resource can be watched. It is called for every object change.
func (a *area) status() iter.Seq[mirror.Sync] {
	return func(yield func(mirror.Sync) bool) {
		for _, kind := range [...]input.Kind{input.KindConfigMap, input.KindSecret} {
			if m := a.sources[kind]; m != nil && !yield(m.Status()) {
				return
			}
		}
		for _, kind := range a.kinds {
			if !yield(a.workloads[kind.GroupKind()].Status()) {
				return
			}
		}
	}
}
