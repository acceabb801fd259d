package cli

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

const (
	// lookEvery is how often to look again where no watch tells of a change.
	lookEvery = 10 * time.Second
	// restAfterLook bounds how often a busy record is read.
	restAfterLook = time.Second
)

// whenRecordChanges looks at once, and again whenever the controller has put something on
// record, until the context ends, which is no error: a person has seen enough. Without the
// right to watch the record it looks from time to time.
func whenRecordChanges(ctx context.Context, c client.WithWatch, namespace string, look func(context.Context) error) error {
	for ctx.Err() == nil {
		changes, stop := watchRecord(ctx, c, namespace)
		err := look(ctx)
		if err == nil {
			awaitChange(ctx, changes)
		}
		stop()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// watchRecord begins to watch before anything is read, so that no change is missed. What was
// there before comes first.
func watchRecord(ctx context.Context, c client.WithWatch, namespace string) (changes <-chan watch.Event, stop func()) {
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace), client.MatchingLabels{settings.StateLabel: "true"})
	if err != nil {
		return nil, func() {}
	}
	return w.ResultChan(), w.Stop
}

// awaitChange waits for a change, and a moment for those that come with it.
func awaitChange(ctx context.Context, changes <-chan watch.Event) {
	rest, end := time.NewTimer(restAfterLook), time.NewTimer(lookEvery)
	defer rest.Stop()
	defer end.Stop()
	changed, rested := false, false
	for !changed || !rested {
		select {
		case e, open := <-changes:
			if !open {
				changes = nil
			}
			changed = changed || open && e.Type != watch.Added && e.Type != watch.Bookmark
		case <-rest.C:
			rested = true
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
