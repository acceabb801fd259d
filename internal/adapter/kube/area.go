package kube

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// area is the set of mirrors of one namespace, or of all of them together.
type area struct {
	namespace string
	kinds     []Kind
	sources   map[input.Kind]*Mirror[*Source]
	workloads map[schema.GroupKind]*Mirror[*Workload]

	ended   chan struct{}
	endOnce sync.Once
}

func newArea(c *Cache, namespace string) *area {
	a := &area{
		namespace: namespace,
		kinds:     c.options.Kinds,
		sources:   map[input.Kind]*Mirror[*Source]{},
		workloads: map[schema.GroupKind]*Mirror[*Workload]{},
		ended:     make(chan struct{}),
	}
	for _, kind := range c.options.Sources {
		m := newMirror(resourceName(string(kind), namespace), c.slimSource, c.sourceChanged, c.options.Now)
		m.link.changed = func() { c.options.Report(m.status(RoleSource)) }
		a.sources[kind] = m
	}
	for _, kind := range c.options.Kinds {
		slim := func(object any) (*Workload, error) { return slimWorkload(kind, object, c.options.Vocabulary) }
		m := newMirror(resourceName(kind.Kind, namespace), slim, c.workloadChanged, c.options.Now)
		m.indexed = c.workloadIndexed
		m.link.changed = func() { c.options.Report(m.status(RoleWorkload)) }
		a.workloads[kind.GroupKind()] = m
	}
	return a
}

// run keeps the mirrors in step until the context ends or the area is ended.
func (a *area) run(process context.Context, c client.WithWatch) {
	ctx, cancel := context.WithCancel(process)
	defer cancel()
	stop := context.AfterFunc(ctx, a.end)
	defer stop()
	var group sync.WaitGroup
	for kind, mirror := range a.sources {
		group.Go(func() { mirror.run(ctx, c, scope{list: newSourceList(kind), namespace: a.namespace}) })
	}
	for _, kind := range a.kinds {
		mirror := a.workloads[kind.GroupKind()]
		group.Go(func() { mirror.run(ctx, c, scope{list: kind.newList(), namespace: a.namespace}) })
	}
	<-a.ended
	cancel()
	group.Wait()
	// When the whole process stops, no workload is gone. The loop may still be at
	// work, and would forget what it finds missing.
	if process.Err() == nil {
		a.clear()
	}
}

// end makes run return.
func (a *area) end() {
	a.endOnce.Do(func() { close(a.ended) })
}

// clear takes everything out, so that the index forgets it too. What is on
// record stays: a namespace that comes back continues where it was.
func (a *area) clear() {
	for _, mirror := range a.workloads {
		_ = mirror.Replace(nil, "")
	}
}

func (a *area) status() []Status {
	var all []Status
	for _, kind := range []input.Kind{input.KindConfigMap, input.KindSecret} {
		if m := a.sources[kind]; m != nil {
			all = append(all, m.status(RoleSource))
		}
	}
	for _, kind := range a.kinds {
		all = append(all, a.workloads[kind.GroupKind()].status(RoleWorkload))
	}
	return all
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
