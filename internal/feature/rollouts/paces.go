package rollouts

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/damping"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// manySeries is how many series are kept before those that are over are forgotten.
const manySeries = 1024

// paces count how often in a row each source changed. An ordinary change is only counted in memory;
// the record has those that delay a rollout.
type paces struct {
	policy damping.Policy
	// stops has what is on record, nil without a record. noRoom is called with the reason when there is no room
	// for it, and otherwise with none.
	stops  Stops
	noRoom func(of input.Change, why string)

	mu    sync.Mutex
	known map[input.Change]record.Series
	most  int
}

func newPaces(s Safety, stops Stops, noRoom func(input.Change, string)) *paces {
	return &paces{policy: s.damping(), stops: stops, noRoom: noRoom, known: map[input.Change]record.Series{}, most: manySeries}
}

func (s Safety) damping() damping.Policy { return damping.Policy{First: s.Damping, Most: s.MaxDamping} }

// Damps reports whether a series of changes on record isn't over.
func (s Safety) Damps(known record.Series, now time.Time) bool {
	return !s.damping().IsOver(known.State, now)
}

// seriesOf are the versions that a rollout of the inputs delivers, each as the next one of its source: of the copy in
// the namespace, or of the tag of an image.
func seriesOf(namespace string, due []input.Finding) []input.Change {
	var all []input.Change
	for _, f := range changing(due) {
		of := input.Change{Namespace: namespace, ID: cmp.Or(f.Pace.Source, f.ID), Version: record.Published(f.Change).Version}
		if !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// until is when a version may begin to be delivered, zero for at once, and how many did in a row.
// One that has begun goes on.
func (p *paces) until(of input.Change) (at time.Time, level int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, _ := p.last(of.Subject())
	if last.Version == of.Version {
		return time.Time{}, 0
	}
	return p.policy.Until(last.State), last.Level
}

// last is the series up to now, and whether it is on record.
func (p *paces) last(subject input.Change) (last record.Series, recorded bool) {
	if p.stops != nil {
		last, recorded = p.stops.Series(subject)
	}
	if known, ok := p.known[subject]; ok {
		last = known
	}
	return last, recorded
}

// begin notes that a version begins to be delivered.
func (p *paces) begin(of input.Change, now time.Time) {
	if p.policy.First <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	subject := of.Subject()
	last, recorded := p.last(subject)
	if last.Version == of.Version {
		return
	}
	next := record.Series{Version: of.Version, State: p.policy.After(last.State, now)}
	p.forgetQuiet(now)
	p.known[subject] = next
	delays := p.policy.Delays(next.State)
	if p.stops == nil || !delays && !recorded {
		return
	}
	if !delays {
		next = record.Series{}
	}
	p.noRoom(subject, p.stops.PutSeries(subject, next))
}

// forgetQuiet forgets the series that are over, once there are many.
func (p *paces) forgetQuiet(now time.Time) {
	if len(p.known) < p.most {
		return
	}
	maps.DeleteFunc(p.known, func(_ input.Change, known record.Series) bool { return p.policy.IsOver(known.State, now) })
	p.most = max(manySeries, 2*len(p.known))
}

// begins reports whether the decision begins to deliver its inputs, if it is carried out.
func (d Decision) begins() bool {
	return d.Verb == RollOut || d.Verb == Refresh || d.Verb == Evict && d.Eviction.Begin
}
