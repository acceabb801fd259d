package follow

import (
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// reported remembers what people were last told of each workload, so that they
// are told once, and which workloads are not in step.
type reported struct {
	mu     sync.Mutex
	last   map[kube.Key]told
	warned map[kube.Key][]string
	behind map[kube.Key]standing
	// rolled is when each workload was moved in the last hour.
	rolled map[kube.Key][]time.Time
}

// told is what people were last told of a workload.
type told struct {
	reason input.Reason
	text   string
}

// standing is why a workload is not in step.
type standing struct {
	reason input.Reason
	// since is when the oldest undelivered change was first seen, zero when none is.
	since time.Time
	// blocked is true when a person has to correct something first.
	blocked bool
	// failed is true when the workload has a digest whose rollout failed, and that is not put
	// back; whatever else is due.
	failed bool
}

// tally is how many workloads are not in step, by reason.
type tally struct {
	pending map[input.Reason]int
	// oldest is since when the one that waits longest waits.
	oldest  map[input.Reason]time.Time
	blocked map[input.Reason]int
	// rollouts is how often the workload was moved, in the last hour, that was moved most often
	// of its namespace.
	rollouts map[string]int
}

func newReported() *reported {
	return &reported{
		last: map[kube.Key]told{}, warned: map[kube.Key][]string{}, behind: map[kube.Key]standing{}, rolled: map[kube.Key][]time.Time{},
	}
}

// replace remembers what people are told of a workload, and returns what they were told before.
func (r *reported) replace(key kube.Key, now told) (before told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.last[key]
	if before != now {
		r.last[key] = now
	}
	return before
}

// replaceWarnings remembers the warnings of a workload, and returns those before them and
// whether there are others now.
func (r *reported) replaceWarnings(key kube.Key, texts []string) (before []string, isNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.warned[key]
	r.warned[key] = texts
	return before, !slices.Equal(before, texts)
}

// setStanding notes whether the workload is in step, and why not.
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

// addRollout notes that the workload was moved. What is older than an hour is dropped, and
// what goes beyond a hundred: that is too often, whatever the number.
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

// busiest counts by namespace how often the workload was moved that was moved most often.
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

// tally counts the workloads that are not in step, and how often others were moved.
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

// forget drops a workload that is gone.
func (r *reported) forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
	delete(r.warned, key)
	delete(r.rolled, key)
	delete(r.behind, key)
}
