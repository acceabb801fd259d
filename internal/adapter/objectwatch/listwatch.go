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

	"github.com/lockstep-dev/lockstep/internal/core/filemap"
)

// listWatch wraps the two calls of a reflector, so that it only ever sees
// objects without contents.
func (w *Watcher) listWatch(s Selector) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := w.list(ctx, s, o)
			w.report(ctx, s, "list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			stream, err := w.watch(ctx, s, o)
			w.report(ctx, s, "watch", err)
			return stream, err
		},
	}
}

// report passes an error on, unless it is only the end of the process or an
// expired version, which the reflector mends by itself.
func (w *Watcher) report(ctx context.Context, s Selector, verb string, err error) {
	if err == nil || ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	w.sink.Failed(s.String(), fmt.Errorf("%s %s: %w", verb, s, err))
}

func (w *Watcher) list(ctx context.Context, s Selector, o metav1.ListOptions) (*objectList, error) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion = "" // the server would ignore the page size
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
		if err := w.strip(s.Kind, &list.Items[i]); err != nil {
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

// watch opens a stream that ends by itself within half the deadline, and that
// is torn down when nothing at all is heard of it for the whole deadline.
func (w *Watcher) watch(ctx context.Context, s Selector, o metav1.ListOptions) (watch.Interface, error) {
	half := int64(w.opts.Stall / time.Second / 2)
	o.Watch, o.TimeoutSeconds = true, &half
	// The stream lives as long as its context. Waiting for its beginning is
	// bounded by the same timer as waiting for its events.
	ctx, cancel := context.WithCancel(ctx)
	guard := time.AfterFunc(w.opts.Stall, cancel)
	stream, err := w.get(s, &o).Watch(ctx)
	if err != nil {
		stalled := !guard.Stop()
		cancel()
		w.redial()
		if stalled {
			return nil, errors.New("the API server did not answer within the stall deadline")
		}
		return nil, err
	}
	w.alive(s.String())
	guard.Reset(w.opts.Stall)
	filtered := watch.Filter(stream, func(event watch.Event) (watch.Event, bool) {
		guard.Reset(w.opts.Stall)
		w.alive(s.String())
		return w.take(s.Kind, event), true
	})
	return &guarded{Interface: filtered, stop: func() {
		if !guard.Stop() {
			w.redial()
		}
		cancel()
	}}, nil
}

// guarded ends the guard together with the stream.
type guarded struct {
	watch.Interface
	stop func()
}

// Stop ends the stream.
func (g *guarded) Stop() {
	g.stop()
	g.Interface.Stop()
	// The filter may be about to hand over an event that nobody takes.
	go func() {
		for range g.ResultChan() {
		}
	}()
}

// take stores the contents of an event's object. When that fails the event
// becomes an error, so that the reflector asks for it again.
func (w *Watcher) take(kind filemap.Kind, event watch.Event) watch.Event {
	o, ok := event.Object.(*object)
	if !ok {
		return event
	}
	if event.Type != watch.Added && event.Type != watch.Modified {
		o.drop(w.opts.SubdirAnnotation)
		return event
	}
	if err := w.strip(kind, o); err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return event
}

// strip hands the values to the sink and forgets them.
func (w *Watcher) strip(kind filemap.Kind, o *object) error {
	err := o.values(kind, func(key string, value []byte) error {
		digest, err := w.sink.Keep(value)
		o.entries = append(o.entries, filemap.Entry{Key: key, Digest: digest, Size: int64(len(value))})
		return err
	})
	o.drop(w.opts.SubdirAnnotation)
	return err
}

// store passes what the reflector finds on to the sink.
type store struct {
	source     string
	kind       filemap.Kind
	sink       Sink
	annotation string
}

func (s *store) convert(item any) (filemap.Object, error) {
	o, ok := item.(*object)
	if !ok {
		return filemap.Object{}, fmt.Errorf("unexpected %T in the stream of %s", item, s.source)
	}
	return filemap.Object{
		Ref:    filemap.Ref{Kind: s.kind, Namespace: o.Namespace, Name: o.Name},
		Subdir: o.Annotations[s.annotation], Entries: o.entries,
	}, nil
}

// Add takes a new object.
func (s *store) Add(item any) error { return s.Update(item) }

// Update takes a changed object.
func (s *store) Update(item any) error {
	o, err := s.convert(item)
	if err == nil {
		s.sink.Put(s.source, o)
	}
	return err
}

// Delete takes an object that is gone.
func (s *store) Delete(item any) error {
	o, err := s.convert(item)
	if err == nil {
		s.sink.Remove(s.source, o.Ref)
	}
	return err
}

// Replace takes the whole source.
func (s *store) Replace(items []any, _ string) error {
	objects := make([]filemap.Object, 0, len(items))
	for _, item := range items {
		o, err := s.convert(item)
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	s.sink.Replace(s.source, objects)
	return nil
}

// Resync has nothing to do: the sink compares contents itself.
func (s *store) Resync() error { return nil }
