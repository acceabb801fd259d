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
		{func() { a.add(kube.Key{Name: "web"}, false); a.seen(copyWith(1), copyWith(1)) }, 0},
		{func() { a.seen(copyWith(1), copyWith(2)) }, 1},
		{func() { a.seen(copyWith(2), copyWith(3)) }, 1}, // once
		{func() {
			a.add(kube.Key{Name: "web"}, false)
			a.forget(kube.Key{Name: "web"})
			a.seen(copyWith(3), copyWith(4))
		}, 1},
		{func() { // after a gap of the watch, in which an earlier template was taken up again
			renumbered := copyWith(4)
			renumbered.Revision = 5
			a.add(kube.Key{Name: "web"}, false)
			a.seen(copyWith(4), renumbered)
		}, 2},
	} {
		tc.do()
		if woken != tc.want {
			t.Errorf("step %d: woken %d times, want %d", step, woken, tc.want)
		}
	}
}

// TestAwaitedHealth: the numbers of pods change many times in a rollout, its state of health twice.
func TestAwaitedHealth(t *testing.T) {
	t.Parallel()
	woken := 0
	a := newAwaited(func(kube.Key) { woken++ })
	web := kube.Key{Name: "web"}
	copyWith := func(updated int, borrowed int64) *kube.Workload {
		return &kube.Workload{Identity: kube.Identity{Key: web}, Status: kube.Progress{BorrowedGeneration: borrowed, Status: health.Status{
			Observed: true, Counted: true, Counts: health.Counts{Wanted: 3, Existing: 3, Updated: updated, Available: 3},
		}}}
	}
	for step, tc := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"it progresses", func() {
			a.add(web, true)
			a.seen(copyWith(0, 0), copyWith(1, 0))
			a.seen(copyWith(1, 0), copyWith(2, 0))
		}, 0},
		{"it is done", func() { a.seen(copyWith(2, 0), copyWith(3, 0)) }, 1},
		{"once", func() { a.seen(copyWith(3, 0), copyWith(2, 0)) }, 1},
		{"a later decision waits for everything", func() { a.add(web, true); a.add(web, false); a.seen(copyWith(1, 0), copyWith(2, 0)) }, 2},
		{"a later decision waits for the health only", func() { a.add(web, false); a.add(web, true); a.seen(copyWith(1, 0), copyWith(2, 0)) }, 2},
		{"done with another template of the lender", func() { a.seen(copyWith(3, 4), copyWith(3, 5)) }, 3},
	} {
		tc.do()
		if woken != tc.want {
			t.Errorf("step %d: %s: woken %d times, want %d", step, tc.reason, woken, tc.want)
		}
	}
}
