package cluster

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// TestAwaited: what a workload's controller notes wakes it once, and only one that a decision
// waits for.
func TestAwaited(t *testing.T) {
	t.Parallel()
	woken := 0
	a := newAwaited(func(kube.Key) { woken++ })
	copyWith := func(updated int) *kube.Workload {
		return &kube.Workload{Identity: kube.Identity{Key: kube.Key{Name: "web"}}, Status: kube.Progress{Status: health.Status{Counts: health.Counts{Updated: updated}}}}
	}
	for step, tc := range []struct {
		do   func()
		want int
	}{
		{func() { a.seen(copyWith(0), copyWith(1)) }, 0}, // no decision waits
		{func() { a.add(kube.Key{Name: "web"}); a.seen(copyWith(1), copyWith(1)) }, 0},
		{func() { a.seen(copyWith(1), copyWith(2)) }, 1},
		{func() { a.seen(copyWith(2), copyWith(3)) }, 1}, // once
		{func() {
			a.add(kube.Key{Name: "web"})
			a.forget(kube.Key{Name: "web"})
			a.seen(copyWith(3), copyWith(4))
		}, 1},
		{func() { // after a gap of the watch, in which an earlier template was taken up again
			renumbered := copyWith(4)
			renumbered.Revision = 5
			a.add(kube.Key{Name: "web"})
			a.seen(copyWith(4), renumbered)
		}, 2},
	} {
		tc.do()
		if woken != tc.want {
			t.Errorf("step %d: woken %d times, want %d", step, woken, tc.want)
		}
	}
}
