package rollouts

import (
	"maps"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// manyPaces is how many inputs are kept before those that are quiet are forgotten.
const manyPaces = 1024

// paces count how often in a row each input changed. An ordinary change is only counted in memory;
// the record has those that delay a rollout.
type paces struct {
	policy damping.Policy
	// change is what is on record, and put writes it.
	change func(input.Change) (record.Change, bool)
	put    func(input.Change, record.Change)

	mu    sync.Mutex
	known map[input.Change]pace
	most  int
}

// pace is the series of versions that began to be delivered, up to this one.
type pace struct {
	damping.State
	version string
	// earlier is the version before, if both may be on their way: workloads use different copies
	// of a shared source, and different tags of a repository.
	earlier string
}

// hasBegun reports whether the change is on its way.
func (p pace) hasBegun(c input.Change) bool {
	version := record.VersionOf(c)
	return p.version == version || p.earlier == version && version != ""
}

func newPaces(s Safety, change func(input.Change) (record.Change, bool), put func(input.Change, record.Change)) *paces {
	if change == nil {
		change = func(input.Change) (record.Change, bool) { return record.Change{}, false }
	}
	return &paces{policy: s.damping(), change: change, put: put, known: map[input.Change]pace{}, most: manyPaces}
}

func (s Safety) damping() damping.Policy { return damping.Policy{First: s.Damping, Most: s.MaxDamping} }

// IsCalm reports whether a series of changes on record is over.
func (s Safety) IsCalm(known record.Change, now time.Time) bool {
	return s.damping().IsOver(damping.State{Level: known.Level, Last: known.At}, now)
}

// until is when a version may begin to be delivered, zero for at once, and how many did in a row.
// One that has begun goes on.
func (p *paces) until(c input.Change) (at time.Time, level int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last(c)
	if last.hasBegun(c) {
		return time.Time{}, 0
	}
	return p.policy.Until(last.State), last.Level
}

// last is the version that began to be delivered last.
func (p *paces) last(c input.Change) pace {
	if known, ok := p.known[c.Subject()]; ok {
		return known
	}
	known, _ := p.change(c)
	return pace{State: damping.State{Level: known.Level, Last: known.At}, version: known.Version}
}

// begin notes that a version begins to be delivered.
func (p *paces) begin(c input.Change, now time.Time) {
	if p.policy.First <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last, version := p.last(c), record.VersionOf(c)
	if last.hasBegun(c) {
		return
	}
	next := pace{State: p.policy.After(last.State, now), version: version}
	if c.CanVary() {
		next.earlier = last.version
	}
	p.forgetQuiet(now)
	p.known[c.Subject()] = next
	stored, recorded := p.change(c)
	if !p.policy.Delays(next.State) && (!recorded || stored.Level == 0) {
		return
	}
	stored = stored.WithoutFailures(func(f record.Failure) bool { return f.Version != version && !c.CanVary() })
	stored.Version, stored.Level, stored.At = version, 0, time.Time{}
	if p.policy.Delays(next.State) {
		stored.Level, stored.At = next.Level, next.Last
	}
	p.put(c, stored)
}

// forgetQuiet forgets the inputs whose series is over, once there are many.
func (p *paces) forgetQuiet(now time.Time) {
	if len(p.known) < p.most {
		return
	}
	maps.DeleteFunc(p.known, func(_ input.Change, known pace) bool { return p.policy.IsOver(known.State, now) })
	p.most = max(manyPaces, 2*len(p.known))
}

// begins reports whether the decision begins to deliver its inputs, if it is carried out.
func (d Decision) begins() bool {
	return d.Verb == RollOut || d.Verb == Refresh || d.Verb == Evict && d.Eviction.Begin
}
