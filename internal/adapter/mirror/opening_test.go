package mirror

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestOpenWatch(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	cases := map[string]struct {
		reason string
		open   func(context.Context) (watch.Interface, error)
		want   error
		took   time.Duration
	}{
		"Open":    {"a watch is a watch", func(context.Context) (watch.Interface, error) { return watch.NewFake(), nil }, nil, 0},
		"Refused": {"an error is an error", func(context.Context) (watch.Interface, error) { return nil, refused }, refused, 0},
		"Closed":  {"an empty watch hides a closed connection", func(context.Context) (watch.Interface, error) { return watch.NewEmptyWatch(), nil }, errNoAnswer, 0},
		"Hangs": {"a connection that hangs is given up", func(ctx context.Context) (watch.Interface, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, errNoAnswer, openTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w, err := openWatch(t.Context(), tc.open)
				if !errors.Is(err, tc.want) || (w == nil) != (tc.want != nil) || time.Since(began) != tc.took {
					t.Errorf("%s: %v, error %v after %s", tc.reason, w, err, time.Since(began))
				}
				if w != nil {
					w.Stop()
				}
			})
		})
	}
}

// TestOpenedWatchOutlivesItsOpening: the bound is for the answer, not for the watch.
func TestOpenedWatchOutlivesItsOpening(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside context.Context
		w, err := openWatch(t.Context(), func(ctx context.Context) (watch.Interface, error) {
			inside = ctx
			return watch.NewFake(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * openTimeout) // the bubble's time, not ours
		if inside.Err() != nil {
			t.Error("the watch was ended by the bound of its opening")
		}
		w.Stop()
		if inside.Err() == nil {
			t.Error("a stopped watch keeps its context")
		}
	})
}
