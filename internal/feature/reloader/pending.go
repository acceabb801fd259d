package reloader

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
)

// event is what happened to a source.
type event string

const (
	added   event = "add"
	updated event = "update"
	deleted event = "delete"
)

// change is a source's current version that workloads don't have yet.
type change struct {
	stakater.Source
	event event
	// hash is the version as templates show it, strong the one that decides; before is the hash
	// of the version that was there before the change, empty when it isn't known.
	hash, before string
	strong       [sha256.Size]byte
	// version is the resource version of the source, and written when it got its content, by the
	// API server's clock; zero when that isn't known.
	version string
	written time.Time
	// dataWrittenAt is the latest time of a data write in the source's managed fields. It is a hint.
	dataWrittenAt time.Time
	// first and last are the times of the first and the last change. One that was tried already
	// begins another row.
	first, last time.Time
	tried       bool
	// only are the workloads that lack the change, nil for all: "Deployment/web", or "Job/*" for
	// all of a kind.
	only map[string]bool
	// has are the workloads that have it, and failed the last failure of each of the others.
	has    map[types.UID]bool
	failed map[types.UID]string
}

func (c *change) id() id { return id{c.Type, c.Name} }

// waits is how long the change has to be quiet still.
func (c *change) waits(now time.Time, quiet, most time.Duration) time.Duration {
	return min(c.last.Add(quiet).Sub(now), c.first.Add(most).Sub(now))
}

// concerns reports whether a workload may lack the change.
func (c *change) concerns(kind, name string) bool {
	return c.only == nil || c.only[kind+"/"+name] || c.only[allOf(kind)]
}

// allOf stands for all workloads of a kind.
func allOf(kind string) string { return kind + "/*" }

// pending are the changes that wait, by namespace.
type pending struct {
	mu sync.Mutex
	by map[string]map[id]*change
}

func newPending() *pending { return &pending{by: map[string]map[id]*change{}} }

// put adds a change, or joins it with the one of the same source that waits.
func (p *pending) put(namespace string, c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by[namespace] == nil {
		p.by[namespace] = map[id]*change{}
	}
	c.has, c.failed = map[types.UID]bool{}, map[types.UID]string{}
	if earlier := p.by[namespace][c.id()]; earlier != nil {
		earlier.join(c)
	}
	p.by[namespace][c.id()] = c
}

// join makes a later change of the same source one that began with this one.
func (c *change) join(later *change) {
	if c.strong == later.strong && c.event != deleted && later.event != deleted {
		later.has, later.failed = c.has, c.failed
	}
	later.before, later.event = c.before, c.event.then(later.event)
	if !c.tried {
		later.first = c.first
	}
	if c.only == nil || later.only == nil || c.strong != later.strong {
		later.only = nil
		return
	}
	later.only = maps.Clone(later.only)
	maps.Copy(later.only, c.only)
}

// then is what two events in a row amount to.
func (e event) then(next event) event {
	switch {
	case e == deleted && next == added:
		return updated
	case e == added && next == updated:
		return added
	default:
		return next
	}
}

// clear forgets all changes.
func (p *pending) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.by)
}

// namespaces are those with changes.
func (p *pending) namespaces() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.by))
}

// drop forgets the change of a source.
func (p *pending) drop(namespace string, of id) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(namespace, of)
}

func (p *pending) remove(namespace string, of id) {
	delete(p.by[namespace], of)
	if len(p.by[namespace]) == 0 {
		delete(p.by, namespace)
	}
}

// in returns copies of the changes of a namespace, the earliest first.
func (p *pending) in(namespace string) []*change {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*change, 0, len(p.by[namespace]))
	for _, c := range p.by[namespace] {
		copied := *c
		copied.has, copied.failed = maps.Clone(c.has), maps.Clone(c.failed)
		all = append(all, &copied)
	}
	sorting.By(all, func(a, b *change) int {
		if at := a.last.Compare(b.last); at != 0 {
			return at
		}
		return compareIDs(a.id(), b.id())
	})
	return all
}

// has reports whether a change of the source waits.
func (p *pending) has(namespace string, of id) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[namespace][of] != nil
}

// settle notes what a pass did. A change that every workload has is done, unless the source has
// changed since.
func (p *pending) settle(namespace string, seen *change, done bool) (settled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.by[namespace][seen.id()]
	if c == nil || c.strong != seen.strong || c.event != seen.event {
		return false
	}
	if done {
		p.remove(namespace, seen.id())
		return true
	}
	c.has, c.failed, c.tried = seen.has, seen.failed, true
	return false
}

// size is the number of changes that wait.
func (p *pending) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, changes := range p.by {
		n += len(changes)
	}
	return n
}

// oldest is the lowest resource version of the changes of a type that wait, zero without one.
func (p *pending) oldest(of stakater.Type, in func(namespace string) bool) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	lowest := uint64(0)
	for namespace, changes := range p.by {
		for _, c := range changes {
			if n := number(c.version); c.Type == of && in(namespace) && (lowest == 0 || n < lowest) {
				lowest = n
			}
		}
	}
	return lowest
}
