// Package pages reads lists in pages of a bounded size.
package pages

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The first page of a list has First objects, the others about pageBytes and at most
// maxPage objects.
const (
	First = 4

	maxPage   = 500
	pageBytes = 4 << 20
)

// Items reads a list in pages, so a tenant with large objects costs the memory of one page.
// Keep copies of what you need: a pointer into an object keeps its page. An error ends the
// list.
func Items(ctx context.Context, c client.Reader, list client.ObjectList, options ...client.ListOption) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		for limit := int64(First); ; {
			var err error
			limit, err = query{c, list, options}.page(ctx, limit, func(o client.Object) bool { return yield(o, nil) })
			if err != nil && !errors.Is(err, errStopped) {
				yield(nil, err)
			}
			if err != nil || list.GetContinue() == "" {
				return
			}
		}
	}
}

// few bounds the pages that all calls of [Each] hold at the same time. It is a channel because
// tests in virtual time share it, and a semaphore makes channels of its own in them.
var few = make(chan struct{}, 2) //nolint:gochecknoglobals // The memory that it bounds is the process's.

// Each reads a list in pages, and calls see with each object until it returns false. Workers
// share the memory of a few pages, however many of them read. So see must not keep the object,
// and must not wait for anything.
func Each(ctx context.Context, c client.Reader, list client.ObjectList, see func(client.Object) bool, options ...client.ListOption) error {
	for limit := int64(First); ; {
		if err := enter(ctx); err != nil {
			return fmt.Errorf("wait for the lists of others: %w", err)
		}
		var err error
		limit, err = query{c, list, options}.page(ctx, limit, see)
		if dropped := meta.SetList(list, nil); err == nil {
			err = dropped
		}
		<-few
		switch {
		case errors.Is(err, errStopped):
			return nil
		case err != nil:
			return err
		case list.GetContinue() == "":
			return nil
		}
	}
}

// enter waits until there is room for a page.
func enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case few <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// query is a list that is read in pages.
type query struct {
	client  client.Reader
	list    client.ObjectList
	options []client.ListOption
}

// page reads the page after the one that the list has, and returns the size of the next one.
func (q query) page(ctx context.Context, limit int64, see func(client.Object) bool) (next int64, err error) {
	next, err = Read(ctx, q.client, q.list, limit, append(slices.Clone(q.options), client.Continue(q.list.GetContinue()))...)
	if err != nil {
		return next, err
	}
	return next, meta.EachListItem(q.list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("unexpected type %T", item)
		}
		if !see(o) {
			return errStopped
		}
		return nil
	})
}

var errStopped = errors.New("the caller has seen enough")

// Read reads a page of at most limit objects into the list, and returns the size of the page
// after it. If the answer is too large, it asks again for as few objects as a first page has.
func Read(ctx context.Context, c client.Reader, list client.ObjectList, limit int64, options ...client.ListOption) (next int64, err error) {
	options = slices.Clip(options)
	// The library logs every answer that isn't read to its end.
	err = c.List(logr.NewContext(ctx, logr.Discard()), list, append(options, client.Limit(limit))...)
	if isTooLarge(err) {
		limit = First
		err = c.List(ctx, list, append(options, client.Limit(limit))...)
	}
	return following(list, limit), err
}

// following is the size of the page after this one. It is at most eight times as large: the
// first objects of a list may be small by chance.
func following(page client.ObjectList, limit int64) int64 {
	objects, size := int64(0), int64(1)
	_ = meta.EachListItem(page, func(item runtime.Object) error {
		if o, ok := item.(interface{ Size() int }); ok {
			objects, size = objects+1, size+int64(o.Size())
		}
		return nil
	})
	if objects == 0 {
		return min(8*limit, maxPage) // Their size isn't known, but that of the answer is bounded.
	}
	return min(max(1, objects*pageBytes/size), 8*limit, maxPage)
}
