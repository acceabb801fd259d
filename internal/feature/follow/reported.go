package follow

import (
	"slices"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// reported remembers what people were last told of each workload, so that they
// are told once, and which workloads wait.
type reported struct {
	mu      sync.Mutex
	last    map[kube.Key]string
	warned  map[kube.Key][]string
	pending map[kube.Key]input.Reason
}

func newReported() *reported {
	return &reported{last: map[kube.Key]string{}, warned: map[kube.Key][]string{}, pending: map[kube.Key]input.Reason{}}
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

// setPending notes whether the workload waits, and why.
func (r *reported) setPending(key kube.Key, d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.PendingSince.IsZero() {
		delete(r.pending, key)
	} else {
		r.pending[key] = d.Reason
	}
}

// waiting is how many workloads wait, by reason.
func (r *reported) waiting() map[input.Reason]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[input.Reason]int{}
	for _, reason := range r.pending {
		all[reason]++
	}
	return all
}

// forget drops a workload that is gone.
func (r *reported) forget(key kube.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
	delete(r.warned, key)
	delete(r.pending, key)
}
