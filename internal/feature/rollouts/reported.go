package rollouts

import (
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// reported remembers the last report about each workload, so users are notified once, and
// which workloads aren't in step.
type reported struct {
	mu     sync.Mutex
	last   map[kube.Key]lastReport
	warned map[kube.Key][]string
	behind map[kube.Key]standing
	// rolled lists when each workload was rolled out in the last hour.
	rolled map[kube.Key][]time.Time
}

// lastReport is the last report about a workload.
type lastReport struct {
	reason input.Reason
	text   string
}

// standing is why a workload is not in step.
type standing struct {
	reason input.Reason
	// since is when the oldest undelivered change was first seen, zero when none is.
	since time.Time
	// blocked is true when a user has to correct something first.
	blocked bool
	// failed is true when the workload runs a digest whose rollout failed and that isn't
	// rolled back, whatever else is due.
	failed bool
}

// tally is how many workloads are not in step, by reason.
type tally struct {
	pending map[input.Reason]int
	// oldest is the earliest time since when a workload waits.
	oldest  map[input.Reason]time.Time
	blocked map[input.Reason]int
	// rollouts counts rollouts in the last hour of each namespace's most frequently rolled
	// workload.
	rollouts map[string]int
}

func newReported() *reported {
	return &reported{
		last: map[kube.Key]lastReport{}, warned: map[kube.Key][]string{}, behind: map[kube.Key]standing{}, rolled: map[kube.Key][]time.Time{},
	}
}

// replace remembers the report about a workload, and returns the previous one.
func (r *reported) replace(key kube.Key, now lastReport) (before lastReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.last[key]
	if before != now {
		r.last[key] = now
	}
	return before
}

// replaceWarnings remembers a workload's warnings, and returns the previous ones and
// whether they differ.
func (r *reported) replaceWarnings(key kube.Key, texts []string) (before []string, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.warned[key]
	r.warned[key] = texts
	return before, !slices.Equal(before, texts)
}

// setStanding records whether the workload is in step, and why not.
func (r *reported) setStanding(key kube.Key, d Decision, warnings []input.Warning) {
	failed := slices.ContainsFunc(warnings, func(w input.Warning) bool { return w.Reason == input.RolloutFailed })
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.PendingSince.IsZero() && !d.isMistake() && !failed {
		delete(r.behind, key)
		return
	}
	r.behind[key] = standing{reason: d.Reason, since: d.PendingSince, blocked: d.isMistake(), failed: failed}
}

// addRollout records that the workload was rolled out. It drops times older than an hour,
// and those beyond a hundred, which is too often anyway.
func (r *reported) addRollout(key kube.Key, now time.Time) {
	const most = 100
	r.mu.Lock()
	defer r.mu.Unlock()
	times := append(lastHour(r.rolled[key], now), now)
	r.rolled[key] = times[max(0, len(times)-most):]
}

func lastHour(times []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(times, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
}

// busiest counts by namespace the rollouts of the most frequently rolled workload.
func (r *reported) busiest(now time.Time) map[string]int {
	all := map[string]int{}
	for key, times := range r.rolled {
		times = lastHour(times, now)
		if r.rolled[key] = times; len(times) == 0 {
			delete(r.rolled, key)
			continue
		}
		all[key.Namespace] = max(all[key.Namespace], len(times))
	}
	return all
}

// tally counts the workloads that aren't in step, and the most frequent rollouts.
func (r *reported) tally(now time.Time) tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := tally{
		pending: map[input.Reason]int{}, oldest: map[input.Reason]time.Time{}, blocked: map[input.Reason]int{},
		rollouts: r.busiest(now),
	}
	for _, s := range r.behind {
		if s.blocked {
			all.blocked[s.reason]++
		}
		if s.failed {
			all.blocked[input.RolloutFailed]++
		}
		if s.since.IsZero() {
			continue
		}
		all.pending[s.reason]++
		if oldest, known := all.oldest[s.reason]; !known || s.since.Before(oldest) {
			all.oldest[s.reason] = s.since
		}
	}
	return all
}

// forgetStanding drops whether the workload is in step: it is being deleted.
func (r *reported) forgetStanding(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.behind, key)
}

// forget drops a workload that is gone.
func (r *reported) forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
	delete(r.warned, key)
	delete(r.rolled, key)
	delete(r.behind, key)
}
