package configs

import (
	"sync"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// gaps are the writes in gaps of the watches for which the pods of a workload were checked: they have
// loaded what is there now, and aren't checked again. The process that saw the gap is the only one
// that needs to know.
type gaps struct {
	mu      sync.Mutex
	checked map[kube.Key]map[input.ID]timeline.Bounds
}

// check notes that the workload's pods have loaded what was there after the write.
func (g *gaps) check(key kube.Key, id input.ID, missed timeline.Bounds) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.checked == nil {
		g.checked = map[kube.Key]map[input.ID]timeline.Bounds{}
	}
	if g.checked[key] == nil {
		g.checked[key] = map[input.ID]timeline.Bounds{}
	}
	g.checked[key][id] = missed
}

// left is the write, zero if the workload was checked.
func (g *gaps) left(key kube.Key, id input.ID, missed timeline.Bounds) timeline.Bounds {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.checked[key][id] == missed {
		return timeline.Bounds{}
	}
	return missed
}

func (g *gaps) drop(key kube.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.checked, key)
}
