package ledger

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	// lookEvery is the polling interval without a watch.
	lookEvery = 10 * time.Second
	// restAfterLook limits how often a busy record is read.
	restAfterLook = time.Second
)

// WhenChanged calls look immediately, and again whenever the controller has written to the
// record, until the context ends, which isn't an error: the user stopped the command. Without
// permission to watch the record it polls.
func WhenChanged(ctx context.Context, c client.WithWatch, namespace string, look func(context.Context) error) error {
	var changes watch.Interface
	defer func() { stopWatch(changes) }()
	for ctx.Err() == nil {
		if changes == nil {
			changes = watchRecord(ctx, c, namespace)
		}
		if err := look(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if !awaitChange(ctx, changes) {
			stopWatch(changes)
			changes = nil
		}
	}
	return nil
}

func stopWatch(w watch.Interface) {
	if w != nil {
		w.Stop()
	}
}

// watchRecord starts watching before anything is read, so changes aren't missed; nil without
// permission. The watch reports existing objects first.
func watchRecord(ctx context.Context, c client.WithWatch, namespace string) watch.Interface {
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingLabels{settings.StateLabel: "true"})
	if err != nil {
		return nil
	}
	return w
}

// awaitChange waits for a change, plus a moment for further changes, or until the polling
// interval is over. It reports whether the watch is still open.
func awaitChange(ctx context.Context, w watch.Interface) (watches bool) {
	var changes <-chan watch.Event
	if w != nil {
		changes, watches = w.ResultChan(), true
	}
	rest, end := time.NewTimer(restAfterLook), time.NewTimer(lookEvery)
	defer rest.Stop()
	defer end.Stop()
	changed, rested := false, false
	for !changed || !rested {
		select {
		case e, open := <-changes:
			if !open || e.Type == watch.Error {
				changes, watches = nil, false
			}
			changed = changed || open && e.Type != watch.Added && e.Type != watch.Bookmark
		case <-rest.C:
			rested = true
		case <-end.C:
			return watches
		case <-ctx.Done():
			return watches
		}
	}
	return watches
}
