package kube

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/mirror"
	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// podsAt is a status at a minute: template, wanted, existing, updated and available pods.
type podsAt struct {
	minute                               int
	sum                                  byte
	wanted, existing, updated, available int
	// mark is "unobserved", "paused", or "another" for another hash of a borrowed template.
	mark string
}

// follows plays the copies of a StatefulSet that arrive one after the other. The first one is
// listed two minutes after it was written. The last template was patched at minute 0.
func follows(copies []podsAt) *Workload {
	var last *Workload
	for _, c := range copies {
		w := &Workload{Identity: Identity{UID: "1"}, PodTemplate: PodTemplate{templateSum: [32]byte{c.sum}}, TemplateObject: TemplateObject{RolledOutAt: minute(0), WrittenAt: minute(c.minute)}}
		w.Status = Progress{Status: health.Status{
			Observed: c.mark != "unobserved", Paused: c.mark == "paused", Counted: true, Deadline: patience,
			Counts: health.Counts{Wanted: c.wanted, Existing: c.existing, Updated: c.updated, Available: c.available},
		}}
		if c.mark == "another" {
			w.Status.PodHash = c.mark
		}
		if last == nil {
			w.First(mirror.Arrival{At: minute(c.minute + 2)})
		} else {
			w.Follow(last, mirror.Arrival{At: minute(c.minute), Watched: true})
		}
		last = w
	}
	return last
}

func minute(n int) time.Time {
	return time.Date(2026, 11, 15, 3, n, 0, 0, time.UTC)
}

// TestProgress: since when the health is what it is, and when the rollout last progressed.
func TestProgress(t *testing.T) {
	t.Parallel()
	done := podsAt{minute: -60, sum: 1, wanted: 3, existing: 3, updated: 3, available: 3}
	cases := map[string]struct {
		reason            string
		copies            []podsAt
		since, progressed int
		stalled           time.Duration // at minute 40
		state             health.State
	}{
		"LargeStatefulSet": {
			"one pod after the other for 40 minutes isn't a failure",
			[]podsAt{done, {0, 2, 9, 9, 9, 9, "unobserved"}, {1, 2, 9, 9, 0, 9, ""}, {8, 2, 9, 9, 2, 8, ""}, {16, 2, 9, 9, 4, 8, ""}, {24, 2, 9, 9, 6, 8, ""}, {32, 2, 9, 9, 8, 8, ""}},
			0, 32, 8 * time.Minute, health.Progressing,
		},
		"Annotated": {
			"a change that isn't one of the template doesn't make pods less healthy before its controller has seen it",
			[]podsAt{done, {10, 1, 3, 3, 3, 3, "unobserved"}},
			-60, -60, 40 * time.Minute, health.Done,
		},
		"NoProgress": {
			"it is one when nothing moves for the deadline",
			[]podsAt{done, {0, 2, 9, 9, 9, 9, "unobserved"}, {1, 2, 9, 9, 1, 8, ""}},
			0, 1, 39 * time.Minute, health.Failed,
		},
		"CrashLoop": {
			"a pod that is available now and then doesn't progress",
			[]podsAt{done, {0, 2, 3, 3, 3, 3, "unobserved"}, {1, 2, 3, 3, 1, 2, ""}, {2, 2, 3, 3, 1, 3, ""}, {12, 2, 3, 3, 1, 2, ""}, {13, 2, 3, 3, 1, 3, ""}, {38, 2, 3, 3, 1, 2, ""}},
			0, 2, 38 * time.Minute, health.Failed,
		},
		"CrashLoopOfOne": {
			"nor does one that is complete for a moment",
			[]podsAt{{-60, 1, 1, 1, 1, 1, ""}, {0, 2, 1, 1, 1, 1, "unobserved"}, {1, 2, 1, 1, 1, 0, ""}, {2, 2, 1, 1, 1, 1, ""}, {2, 2, 1, 1, 1, 0, ""}, {39, 2, 1, 1, 1, 1, ""}, {39, 2, 1, 1, 1, 0, ""}},
			39, 2, 38 * time.Minute, health.Failed,
		},
		"ScaledDown": {
			"the updated pods went first, and the others follow",
			[]podsAt{done, {0, 2, 9, 9, 5, 9, ""}, {10, 2, 3, 3, 0, 3, ""}, {20, 2, 3, 3, 1, 3, ""}, {31, 2, 3, 3, 2, 3, ""}},
			0, 31, 9 * time.Minute, health.Progressing,
		},
		"UpdatedPodLost": {
			"more available pods with fewer updated ones aren't progress",
			[]podsAt{done, {1, 2, 3, 3, 2, 2, ""}, {38, 2, 3, 3, 1, 3, ""}},
			1, 1, 39 * time.Minute, health.Failed,
		},
		"ScaledUp": {
			"new pods are progress",
			[]podsAt{done, {1, 2, 3, 3, 3, 3, ""}, {35, 2, 9, 5, 5, 3, ""}},
			35, 35, 5 * time.Minute, health.Progressing,
		},
		"PodLost": {
			"after it was done for long, the controller gets its time to replace a pod",
			[]podsAt{done, {1, 2, 3, 3, 3, 3, ""}, {35, 2, 3, 3, 3, 2, ""}},
			35, 35, 5 * time.Minute, health.Progressing,
		},
		"Done":       {"since the first copy that says so", []podsAt{done, {1, 2, 3, 3, 1, 3, ""}, {5, 2, 3, 3, 3, 3, ""}, {7, 2, 3, 3, 3, 3, ""}}, 5, 5, 35 * time.Minute, health.Done},
		"DoneAgain":  {"another template begins anew, even when no copy in between says so", []podsAt{done, {5, 2, 3, 3, 3, 3, ""}}, 5, 5, 35 * time.Minute, health.Done},
		"Borrowed":   {"a borrowed template shows by the hash", []podsAt{{-60, 1, 1, 1, 1, 1, ""}, {5, 1, 1, 1, 1, 1, "another"}}, 5, 5, 35 * time.Minute, health.Done},
		"Paused":     {"since the pause", []podsAt{done, {1, 2, 3, 3, 1, 3, ""}, {4, 2, 3, 3, 1, 3, "paused"}}, 4, 1, 39 * time.Minute, health.Paused},
		"Listed":     {"nothing has happened since the last write", []podsAt{{6, 2, 3, 3, 1, 3, ""}}, 6, 6, 34 * time.Minute, health.Failed},
		"Unobserved": {"the numbers are those of the earlier template", []podsAt{done, {2, 2, 3, 3, 3, 3, "unobserved"}, {3, 2, 3, 3, 3, 3, "unobserved"}}, 2, 2, 38 * time.Minute, health.Progressing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := follows(tc.copies)
			if !w.StateSince.Truncate(time.Minute).Equal(minute(tc.since)) || !w.ProgressedAt.Equal(minute(tc.progressed)) {
				t.Errorf("%s: its state is of %s, its progress of %s; want minutes %d and %d", tc.reason, w.StateSince, w.ProgressedAt, tc.since, tc.progressed)
			}
			stalled := w.Stalled(minute(40))
			if state := health.Of(w.TemplateStatus(), stalled).State; stalled != tc.stalled || state != tc.state {
				t.Errorf("%s: %q after %s, want %q after %s", tc.reason, state, stalled, tc.state, tc.stalled)
			}
		})
	}
}

// TestProgressWithABorrowedTemplate: until its controller has seen the lender's template, the numbers in a
// workload's status are those of the earlier one.
func TestProgressWithABorrowedTemplate(t *testing.T) {
	t.Parallel()
	copyOf := func(seen int64, hash string, updated int) *Workload {
		return &Workload{Identity: Identity{UID: "1"}, Borrows: Key{Name: "lender"}, Status: Progress{PodHash: hash, BorrowedGeneration: seen, Status: health.Status{
			Observed: true, Counted: true, Counts: health.Counts{Wanted: 3, Existing: 3, Updated: updated, Available: 3},
		}}}
	}
	first := copyOf(4, "a", 3)
	first.First(mirror.Arrival{At: minute(0)})
	next := func(minutes int, copies ...*Workload) *Workload {
		last := first
		for _, c := range copies {
			c.Follow(last, mirror.Arrival{At: minute(minutes), Watched: true})
			last = c
		}
		return last
	}
	for name, tc := range map[string]struct {
		reason     string
		generation int64
		borrower   *Workload
		state      health.State
		since      time.Time // of the state, if it is done, and otherwise of the last progress
	}{
		"Same":      {"the lender is as it was", 4, first, health.Done, minute(0)},
		"Patched":   {"the rollout has just begun", 5, first, health.Progressing, minute(20)},
		"Seen":      {"the controller has seen the template, and not begun", 5, next(21, copyOf(5, "a", 3)), health.Done, minute(21)},
		"Begun":     {"the numbers are those of the template", 5, next(21, copyOf(5, "a", 3), copyOf(5, "b", 1)), health.Progressing, minute(21)},
		"MadeAgain": {"a lender that was made again has low generations, and nothing has acted on it yet", 1, first, health.Progressing, minute(20)},
	} {
		lender := &Workload{TemplateObject: TemplateObject{Target: Target{Generation: tc.generation}}, WorkloadHistory: WorkloadHistory{ProgressedAt: minute(20)}}
		p := tc.borrower.Resolved(func(Key) (*Workload, bool) { return lender, true }).Progress(minute(40))
		since := p.ProgressedAt
		if p.Health == health.Done {
			since = p.StateSince
		}
		if p.Health != tc.state || !since.Equal(tc.since) {
			t.Errorf("%s: %s: %q since %s, want %q since %s", name, tc.reason, p.Health, since, tc.state, tc.since)
		}
	}
}

// TestAbortOfAnEarlierTemplate: Argo Rollouts observes a new template before it leaves the abort of the
// old one.
func TestAbortOfAnEarlierTemplate(t *testing.T) {
	t.Parallel()
	type status struct {
		sum     byte
		hash    string
		aborted bool
	}
	for name, tc := range map[string]struct {
		reason            string
		copies            []status
		observed, aborted bool
	}{
		"NotBegun": {"the abort is the old template's", []status{{1, "a", true}, {2, "a", true}, {2, "a", true}}, false, false},
		"Begun":    {"the new template has its name", []status{{1, "a", true}, {2, "a", true}, {2, "b", false}}, true, false},
		"Aborted":  {"the new template was aborted too", []status{{1, "a", true}, {2, "a", true}, {2, "b", true}}, true, true},
		"PutBack":  {"the old template is wanted again", []status{{1, "a", true}, {2, "a", true}, {1, "a", true}}, true, true},
		"Later":    {"the abort came after the template", []status{{1, "a", false}, {2, "b", false}, {2, "b", true}}, true, true},
	} {
		var last *Workload
		for _, c := range tc.copies {
			w := &Workload{Identity: Identity{UID: "1"}, PodTemplate: PodTemplate{templateSum: [32]byte{c.sum}}}
			w.Status = Progress{PodHash: c.hash, Status: health.Status{Observed: true, Aborted: c.aborted}}
			if last == nil {
				w.First(mirror.Arrival{At: minute(0)})
			} else {
				w.Follow(last, mirror.Arrival{At: minute(1), Watched: true})
			}
			last = w
		}
		if got := last.Status; got.Observed != tc.observed || got.Aborted != tc.aborted {
			t.Errorf("%s: %s: observed %t, aborted %t", name, tc.reason, got.Observed, got.Aborted)
		}
	}
}

// TestStalled: what is counted from when the copies show less.
func TestStalled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason                string
		rolledOut, progressed time.Time
		want                  time.Duration
	}{
		"Command":     {"a command reads one copy, and counts from the patch", minute(10), time.Time{}, 30 * time.Minute},
		"JustPatched": {"the watch hasn't reported the patch yet", minute(39), minute(5), time.Minute},
		"NotOurs":     {"another writer's rollout has no deadline", time.Time{}, minute(5), 0},
	} {
		w := &Workload{TemplateObject: TemplateObject{RolledOutAt: tc.rolledOut}, WorkloadHistory: WorkloadHistory{ProgressedAt: tc.progressed}}
		if got := w.Stalled(minute(40)); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
	read := &Workload{TemplateObject: TemplateObject{RolledOutAt: minute(10), WrittenAt: minute(20)}}
	read.First(mirror.Arrival{})
	if got := read.Stalled(minute(40)); got != 30*time.Minute {
		t.Errorf("a copy that a command read is stalled for %s", got)
	}
}

// TestProgressOf: what the judgement of a rollout gets.
func TestProgressOf(t *testing.T) {
	t.Parallel()
	rolling := follows([]podsAt{{1, 2, 3, 3, 1, 3, ""}})
	for name, tc := range map[string]struct {
		reason string
		change func(*Workload)
		health health.State
		pods   bool
	}{
		"Stalled":   {"nothing moved for the deadline", func(*Workload) {}, health.Failed, true},
		"Progress":  {"or it did", func(w *Workload) { w.ProgressedAt = minute(39) }, health.Progressing, true},
		"Aborted":   {"the template is the same", func(w *Workload) { w.Status.Aborted = true }, health.Failed, true},
		"Zero":      {"no pod is wanted", func(w *Workload) { w.Status.Counts = health.Counts{} }, health.Done, false},
		"Uncounted": {"its kind doesn't count", func(w *Workload) { w.Status.Counted = false }, health.Unknown, true},
	} {
		w := *rolling
		tc.change(&w)
		want := spread.Progress{Template: rolling.Template().Sum, Health: tc.health, HasPods: tc.pods, StateSince: w.StateSince, ProgressedAt: w.ProgressedAt, Now: minute(40)}
		if got := w.Progress(minute(40)); got != want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, want)
		}
	}
}

// TestSameHealth: what wakes a workload whose rollout is on trial.
func TestSameHealth(t *testing.T) {
	t.Parallel()
	rolling := podsAt{1, 2, 3, 3, 1, 3, ""}
	deadline := func(d time.Duration) func(*Workload) { return func(w *Workload) { w.Status.Deadline = d } }
	for name, tc := range map[string]struct {
		reason string
		change func(*Workload)
		want   bool
	}{
		"Pod":       {"one more pod doesn't end it", func(w *Workload) { w.Status.Counts.Updated = 2 }, true},
		"Done":      {"the last one does", func(w *Workload) { w.Status.Counts.Updated = 3 }, false},
		"Annotated": {"its controller has acted on the template", func(w *Workload) { w.Status.Observed = false }, true},
		"Shortened": {"it may be over now", deadline(time.Second), false},
		"Resumed":   {"the Deployment controller counts again", deadline(0), true},
	} {
		old := follows([]podsAt{rolling})
		w := *old
		if tc.change(&w); w.SameHealth(old) != tc.want {
			t.Errorf("%s: %t, want %t: %s", name, !tc.want, tc.want, tc.reason)
		}
	}
}
