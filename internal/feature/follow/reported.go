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
	last   map[kube.Key]string
	warned map[kube.Key][]string
	behind map[kube.Key]standing
}

// standing is why a workload is not in step.
type standing struct {
	reason input.Reason
	// since is when the oldest undelivered change was first seen, zero when none is.
	since time.Time
	// blocked is true when a person has to correct something first.
	blocked bool
}

// tally is how many workloads are not in step, by reason.
type tally struct {
	pending map[input.Reason]int
	// oldest is since when the one that waits longest waits.
	oldest  map[input.Reason]time.Time
	blocked map[input.Reason]int
}

func newReported() *reported {
	return &reported{last: map[kube.Key]string{}, warned: map[kube.Key][]string{}, behind: map[kube.Key]standing{}}
}

// isNew reports whether the text differs from the last one, and remembers it.
func (r *reported) isNew(key kube.Key, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[key] == text {
		return false
	}
	r.last[key] = text
	return true
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
func (r *reported) setStanding(key kube.Key, d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.PendingSince.IsZero() && !d.isMistake() {
		delete(r.behind, key)
		return
	}
	r.behind[key] = standing{reason: d.Reason, since: d.PendingSince, blocked: d.isMistake()}
}

// tally counts the workloads that are not in step.
func (r *reported) tally() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := tally{pending: map[input.Reason]int{}, oldest: map[input.Reason]time.Time{}, blocked: map[input.Reason]int{}}
	for _, s := range r.behind {
		if s.blocked {
			all.blocked[s.reason]++
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
	delete(r.behind, key)
}
