package objectwatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-dev/lockstep/internal/agent/core/filemap"
)

// listWatch wraps the two calls of a reflector, so the reflector only sees objects without
// contents.
func (w *Watcher) listWatch(s Selector) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := w.list(ctx, s, o)
			w.report(ctx, s, "list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := w.watch(ctx, s, o)
			if !listsInstead(o, err) {
				w.report(ctx, s, "watch", err)
			}
			// When a stream begins with a list, the end of the list shows that everything could be
			// stored. A stream that resumes has nothing to catch up on.
			if err == nil && o.SendInitialEvents == nil {
				w.sink.Recovered(s.String())
			}
			return stream, err
		},
	}
}

// listsInstead reports that the server refuses a stream that begins with a list, because of a
// missing permission or its age. The reflector lists instead, and the list shows whether the
// source can be read.
func listsInstead(o metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}

// report passes an error on. It skips errors at the end of the process and expired versions,
// which the reflector corrects by itself.
func (w *Watcher) report(ctx context.Context, s Selector, verb string, err error) {
	if err == nil || ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	if s.Name != "" && apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: following one object requires the verbs list and watch, which may be limited to resourceNames: [%s]; get is not enough", err, s.Name)
	}
	w.sink.Failed(s.String(), fmt.Errorf("%s %s: %w", verb, s, err))
}

func (w *Watcher) list(ctx context.Context, s Selector, o metav1.ListOptions) (*objectList, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = "" // with a version, the server would ignore the page size
	}
	if o.Continue == "" {
		w.unpin(s)
	}
	ctx, cancel := context.WithTimeout(ctx, w.opts.Stall)
	defer cancel()
	list := &objectList{}
	if err := w.get(s, &o).Do(ctx).Into(list); err != nil {
		w.redial()
		return nil, err
	}
	w.alive(s.String())
	for i := range list.Items {
		if err := w.strip(s, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (w *Watcher) get(s Selector, o *metav1.ListOptions) *rest.Request {
	o.LabelSelector = s.Labels
	if s.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Name).String()
	}
	return w.rest.Get().NamespaceIfScoped(s.Namespace, s.Namespace != "").Resource(string(s.Kind)+"s").
		VersionedParams(o, metav1.ParameterCodec)
}

// watch opens a stream that the server ends within half the deadline, and that is torn down
// when it is silent for the whole deadline. Opening the stream doesn't count as activity: a
// proxy may answer and then not pass anything on.
func (w *Watcher) watch(ctx context.Context, s Selector, o metav1.ListOptions) (watch.Interface, error) {
	w.unpin(s)
	// The reflector reads everything again. That happens at most once per stream, so objects that
	// come and go at the limit don't load the server.
	if o.SendInitialEvents == nil && w.sink.Readmits(s.String()) {
		return nil, apierrors.NewResourceExpired("objects that were omitted fit now")
	}
	half := int64(w.opts.Stall / time.Second / 2)
	o.Watch, o.TimeoutSeconds = true, &half
	// The stream lives as long as its context. The same timer bounds the wait for the start of
	// the stream and for its events.
	ctx, cancel := context.WithCancel(ctx)
	guard := time.AfterFunc(w.opts.Stall, cancel)
	inner, err := w.get(s, &o).Watch(ctx)
	if err != nil {
		stalled := !guard.Stop()
		cancel()
		w.redial()
		if stalled {
			return nil, errors.New("the API server did not answer within the stall deadline")
		}
		return nil, err
	}
	guard.Reset(w.opts.Stall)
	g := &guarded{inner: inner, events: make(chan watch.Event), cancel: cancel}
	go w.pass(ctx, s, g, guard)
	return g, nil
}

// guarded is a stream whose events have no contents any more.
type guarded struct {
	inner  watch.Interface
	events chan watch.Event
	cancel context.CancelFunc
}

// ResultChan returns the events.
func (g *guarded) ResultChan() <-chan watch.Event { return g.events }

// Stop ends the stream.
func (g *guarded) Stop() {
	g.cancel()
	g.inner.Stop()
}

// pass passes the events on until the stream ends. If the agent did not end it, the server
// did, and that proves as much as an event that the server responds.
func (w *Watcher) pass(ctx context.Context, s Selector, g *guarded, guard *time.Timer) {
	defer close(g.events)
	defer g.cancel()
	for event := range g.inner.ResultChan() {
		if ctx.Err() != nil {
			continue // the reader is gone
		}
		guard.Reset(w.opts.Stall)
		w.alive(s.String())
		select {
		case g.events <- w.take(s, event):
		case <-ctx.Done():
		}
	}
	switch stalled := !guard.Stop(); {
	case stalled:
		w.redial()
	case ctx.Err() == nil:
		w.alive(s.String())
	}
}

// take stores the contents of an event's object. If that fails, the event becomes an error,
// so the reflector requests it again.
func (w *Watcher) take(s Selector, event watch.Event) watch.Event {
	o, ok := event.Object.(*object)
	if !ok {
		return event
	}
	if event.Type != watch.Added && event.Type != watch.Modified {
		o.drop(w.opts.SubdirAnnotation)
		return event
	}
	if err := w.strip(s, o); err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return event
}

// strip passes the values to the sink and drops them from the object. The values stay pinned
// until the sink receives the object itself.
func (w *Watcher) strip(s Selector, o *object) error {
	o.hold = &hold{}
	var err error
	if weight := o.weight(s.Kind); w.sink.Admit(s.String(), o.ref(s.Kind), weight) {
		err = o.values(s.Kind, func(key string, value []byte) error {
			digest, err := w.sink.Keep(value)
			if err == nil {
				o.hold.entries = append(o.hold.entries, filemap.Entry{Key: key, Digest: digest, Size: int64(len(value))})
			}
			return err
		})
	} else {
		o.hold.omitted = weight
	}
	o.drop(w.opts.SubdirAnnotation)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[s] == nil {
		w.held[s] = map[*hold]bool{}
	}
	w.held[s][o.hold] = true
	return err
}

// hold lists the values stored for one object. All copies that the library makes of the
// object share it.
type hold struct {
	entries []filemap.Entry
	omitted int64 // the weight of an object whose values were not stored
}

// handOver records that the sink is about to receive an object.
func (w *Watcher) handOver(s Selector, h *hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held[s], h)
}

// unpin unpins the values of objects that never reached the sink: pages of a list that
// failed later, or the beginning of a stream that was cut. The reflector starts a new list
// or watch only after it gave up the last one.
func (w *Watcher) unpin(s Selector) {
	w.mu.Lock()
	held := w.held[s]
	delete(w.held, s)
	w.mu.Unlock()
	for h := range held {
		w.sink.Unpin(h.entries)
	}
}

// store passes the reflector's objects on to the sink.
type store struct {
	watcher  *Watcher
	selector Selector
}

func (s *store) convert(item any) (filemap.Object, error) {
	o, ok := item.(*object)
	if !ok {
		return filemap.Object{}, fmt.Errorf("unexpected %T in the stream of %s", item, s.selector)
	}
	converted := filemap.Object{
		Ref: o.ref(s.selector.Kind), Created: o.CreationTimestamp.Time,
		Subdir: o.Annotations[s.watcher.opts.SubdirAnnotation],
	}
	if o.hold != nil { // a deleted object has none
		s.watcher.handOver(s.selector, o.hold)
		converted.Entries, converted.Omitted = o.hold.entries, o.hold.omitted
	}
	return converted, nil
}

// Add handles a new object.
func (s *store) Add(item any) error { return s.Update(item) }

// Update handles a changed object.
func (s *store) Update(item any) error {
	o, err := s.convert(item)
	if err == nil {
		s.watcher.sink.Put(s.selector.String(), o)
	}
	return err
}

// Delete handles a deleted object.
func (s *store) Delete(item any) error {
	o, err := s.convert(item)
	if err == nil {
		s.watcher.sink.Remove(s.selector.String(), o.Ref)
	}
	return err
}

// Replace handles a complete list.
func (s *store) Replace(items []any, _ string) error {
	objects := make([]filemap.Object, 0, len(items))
	for _, item := range items {
		o, err := s.convert(item)
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	s.watcher.sink.Replace(s.selector.String(), objects)
	return nil
}

// Resync has nothing to do: the sink compares contents itself.
func (s *store) Resync() error { return nil }
