package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// seenWithin is how long after a write Lockstep has certainly acted on it, while its watches
// work.
const seenWithin = time.Second

// FleetModel applies the rules in docs/guides/safe-rollouts.md to a fleet. It reads facts and reports
// where Lockstep broke the rules. Lockstep learns of a write later than the API server stores
// it. Where that matters, the model allows what was right at any time that Lockstep can have
// decided on.
type FleetModel struct {
	rules   Fleet
	now     time.Time
	members map[string]*member
	sources map[place]*fleetSource
	places  map[string]*dated[FleetNamespace]
	stop    dated[FleetSwitch]
	// failures are the workloads that failed with a change, by its key, and when. They certainly
	// count until the source changes.
	failures map[change]map[string]failure

	// sight is since when Lockstep sees everything, and blind since when it does not, zero
	// while it does.
	sight, blind time.Time
	rollouts     int
}

// place is where a source is, and change one content of it. The change of a shared source is in
// no namespace.
type (
	place  struct{ namespace, source string }
	change struct {
		place
		content string
	}
)

// fleetSource is a source with its content.
type fleetSource struct {
	content dated[string]
	resumed map[string]bool
	hurry   dated[bool]
}

// failure is when a workload failed with a change. It is certain when the workload was healthy
// before beyond doubt, and nothing else can have been delivered.
type failure struct {
	at      time.Time
	certain bool
	// able is true when Lockstep may think that it was healthy before.
	able bool
	// unseen is true while Lockstep may not have seen it, and late when it saw it only after a
	// restart or a gap.
	unseen, late bool
}

// member is one workload.
type member struct {
	FleetWorkload
	// wishes, paused and pods are parts of it with their times.
	wishes dated[FleetWishes]
	paused dated[bool]
	pods   dated[int]
	// dueSince is since when it certainly lacks a version, whichever.
	dueSince time.Time
	// given are the contents that its pods can have, by source: more than one while Lockstep
	// can't have known which one they loaded.
	given map[string][]string
	// done is since when all pods are updated and available, zero while they aren't. lost is
	// the one before, which Lockstep can take for the current one if it didn't see the end.
	done, lost, ended time.Time
	trial             *trial
	// passed is the trial that ended last, and when. Its end may not be on record for a moment.
	passed   *trial
	passedAt time.Time
	// proven are the changes with which it was healthy for the settle time, true for those that
	// Lockstep certainly knows.
	proven map[change]bool
}

// trial is a rollout of Lockstep whose end isn't known.
type trial struct {
	template string
	// contents are those that it can have delivered, by source. able are the sources for which it certainly has a
	// turn, true for those that it delivered to a workload that was healthy then beyond doubt.
	contents map[string][]string
	able     map[string]bool
	// healthy is true when the workload was healthy beyond doubt before the first of them, and
	// mayBe when Lockstep may think so.
	healthy, mayBe bool
	// progressed is when the rollout last came further, and reached how far.
	progressed time.Time
	reached    [2]int
	// failed is true while its controller has given up, and over when Lockstep may have ended its turn: it failed,
	// or may have been taken for healthy.
	failed, over bool
}

// NewFleetModel returns the model of a fleet that Lockstep has not seen yet.
func NewFleetModel(rules Fleet) *FleetModel {
	m := &FleetModel{rules: rules, members: map[string]*member{}, sources: map[place]*fleetSource{}, places: map[string]*dated[FleetNamespace]{}, failures: map[change]map[string]failure{}}
	for _, name := range Namespaces() {
		m.places[name] = &dated[FleetNamespace]{}
	}
	return m
}

// Rollouts is how many rollouts Lockstep has made.
func (m *FleetModel) Rollouts() int { return m.rollouts }

// known is the time up to which Lockstep has certainly seen all writes.
func (m *FleetModel) known() time.Time {
	seen := m.now
	if !m.blind.IsZero() {
		seen = m.blind
	}
	seen = seen.Add(-seenWithin)
	if m.sight.After(seen) {
		return m.sight
	}
	return seen
}

// Observe reads a fact. An error says which rule Lockstep broke with that write.
func (m *FleetModel) Observe(f FleetFact) error {
	m.advance(f.At)
	switch {
	case f.Sight != 0:
		m.look(f.Sight)
	case f.Source != nil:
		m.writeSource(*f.Source)
	case f.Place != nil:
		m.places[f.Place.Name].set(*f.Place, f.At)
	case f.Switch != nil:
		m.stop.set(*f.Switch, f.At)
	case f.Workload != nil:
		return m.writeWorkload(*f.Workload, f.Lockstep)
	}
	return nil
}

// look: Lockstep ceases to see what is written, or sees what there is. It can't see a failure that
// came and went in between.
func (m *FleetModel) look(s Sight) {
	if s == SightLost && m.blind.IsZero() {
		m.blind = m.now
		m.forgetRecords()
	}
	for _, failed := range m.failures {
		for key, f := range failed {
			t := m.members[key].trial
			switch {
			case s == SightLost && f.at.After(m.known()):
				f.unseen = true
			case s == SightBack && f.unseen:
				f.unseen, f.late, f.certain = false, true, f.certain && t != nil && t.failed
			}
			failed[key] = f
		}
	}
	if s == SightBack {
		m.blind, m.sight = time.Time{}, m.now
	}
}

// recordedWithin is how long after an event it is certainly on record.
const recordedWithin = 3 * time.Second

// forgetRecords: a process may end before the end of a trial is on record. For the next one it goes on.
func (m *FleetModel) forgetRecords() {
	for _, w := range m.members {
		if w.trial == nil && w.passed != nil && m.now.Sub(w.passedAt) < recordedWithin {
			w.trial = w.passed
			w.trial.healthy, w.trial.mayBe = false, true
		}
	}
}

// advance lets time pass: workloads that are healthy for long enough prove their changes. While Lockstep doesn't
// see them, it may learn of the proof later, or of a crash instead.
func (m *FleetModel) advance(to time.Time) {
	m.now = to
	for _, w := range m.members {
		switch isDue := len(m.dueFor(w)) > 0; {
		case !isDue:
			w.dueSince = time.Time{}
		case w.dueSince.IsZero():
			w.dueSince = to
		}
		if w.trial != nil && w.done.IsZero() && m.isFreed(w) {
			m.fail(w, false) // its pods crashed for that long
		}
		m.mayPass(w)
		if w.trial == nil || w.done.IsZero() || m.earliest(w).Add(m.rules.Settle).After(to) {
			continue
		}
		if w.trial.healthy || w.trial.mayBe { // one that was broken before proves nothing
			m.prove(w)
		}
		if w.trial.over = true; m.hasWatched() {
			w.passed, w.passedAt, w.trial = w.trial, to, nil
		}
	}
}

// prove notes the contents that a workload has run for long enough.
func (m *FleetModel) prove(w *member) {
	for source, contents := range w.trial.contents {
		for _, content := range contents {
			c := m.changeOf(w.Namespace, source, content)
			w.proven[c] = w.proven[c] || len(contents) == 1 && w.trial.healthy && m.hasWatched()
		}
	}
}

// hasWatched reports whether Lockstep has certainly seen what happened for the settle time.
func (m *FleetModel) hasWatched() bool {
	return m.blind.IsZero() && !m.sight.Add(m.rules.Settle).After(m.now)
}

// mayPass: a workload that was done crashed where Lockstep may not have seen it, so Lockstep may
// have taken its rollout for healthy.
func (m *FleetModel) mayPass(w *member) {
	since := m.earliest(w)
	if w.trial == nil || !w.done.IsZero() || since.IsZero() || !w.ended.After(m.known()) || since.Add(m.rules.Settle).After(m.now) {
		return
	}
	mayBe := w.trial.healthy || w.trial.mayBe
	w.trial.over, w.trial.healthy = true, false
	for source, contents := range w.trial.contents {
		for _, content := range contents {
			c := m.changeOf(w.Namespace, source, content)
			if _, known := w.proven[c]; !known && mayBe {
				w.proven[c] = false
			}
		}
	}
}

// changeOf is the change that a content of a source is.
func (m *FleetModel) changeOf(namespace, source, content string) change {
	if source == Shared {
		namespace = ""
	}
	return change{place{namespace, source}, content}
}

func (m *FleetModel) writeSource(s FleetSource) {
	at := place{s.Namespace, s.Name}
	known, ok := m.sources[at]
	if !ok {
		known = &fleetSource{resumed: map[string]bool{}}
		m.sources[at] = known
	}
	if s.Content != known.content.now {
		left := m.changeOf(at.namespace, at.source, known.content.now)
		known.content.set(s.Content, m.now)
		m.forget(left)
	}
	if s.Hurry != known.hurry.now {
		known.hurry.set(s.Hurry, m.now)
	}
	if s.Resumed != "" {
		known.resumed[s.Resumed] = true
	}
}

// forget: a source had that content. Until no source has it, Lockstep stops it, and then it may forget the failures.
func (m *FleetModel) forget(left change) {
	for key, f := range m.failures[left] {
		m.failures[left][key] = failure{at: f.at, able: f.able}
	}
}

func (m *FleetModel) writeWorkload(w FleetWorkload, byLockstep bool) error {
	key := w.Namespace + "/" + w.Name
	old, ok := m.members[key]
	if !ok {
		old = &member{FleetWorkload: w, given: map[string][]string{}, proven: map[change]bool{}}
		m.members[key] = old
		m.deliver(old, w, false)
	}
	if w.Template != old.Template {
		if byLockstep {
			m.rollouts++
			if err := m.forbidden(old, w); err != nil {
				return fmt.Errorf("%w\n%s", err, m)
			}
		}
		m.deliver(old, w, byLockstep)
	}
	if w.Wishes != old.wishes.now {
		old.wishes.set(w.Wishes, m.now)
	}
	if w.Paused != old.paused.now {
		old.paused.set(w.Paused, m.now)
		m.doubt(key)
	}
	if w.Replicas != old.pods.now {
		old.pods.set(w.Replicas, m.now)
	}
	old.FleetWorkload = w
	if w.Replicas == 0 {
		old.trial = nil
	}
	m.progress(old)
	return nil
}

// deliver: pods are made from another template, and load what there is. Lockstep may have
// decided before the last change of a source.
func (m *FleetModel) deliver(old *member, w FleetWorkload, byLockstep bool) {
	t := &trial{template: w.Template, contents: map[string][]string{}, able: map[string]bool{}, healthy: m.isAble(old), mayBe: m.mayBeAble(old), progressed: m.now}
	if before := old.trial; before != nil && byLockstep {
		t.contents, t.healthy = before.contents, before.healthy && !before.over && old.ended.IsZero()
		for source, able := range before.able {
			if !before.over {
				t.able[source] = able && t.healthy
			}
		}
	}
	for _, source := range Uses()[w.Namespace+"/"+w.Name] {
		loads := []string{m.sources[place{w.Namespace, source}].content.now}
		if shown := w.Shows[source]; byLockstep && shown != "" && shown != loads[0] {
			loads = append(loads, shown)
		}
		if !slices.Equal(loads, old.given[source]) {
			t.contents[source], t.able[source] = loads, m.isAble(old)
			if slices.ContainsFunc(loads, func(content string) bool { return slices.Contains(old.given[source], content) }) {
				delete(t.able, source) // for Lockstep, it may have been delivered before
			}
		}
		old.given[source] = loads
	}
	m.doubt(w.Namespace + "/" + w.Name)
	before := old.trial
	old.trial, old.passed = nil, nil
	switch {
	case w.Replicas == 0:
	case byLockstep:
		old.trial = t
	case before != nil && !m.blind.IsZero(): // the next process may take another writer's rollout for ours
		old.trial = before
		before.healthy, before.mayBe, before.over, before.progressed, before.reached = false, true, true, m.now, [2]int{}
	}
	old.done, old.lost, old.ended = time.Time{}, time.Time{}, time.Time{}
}

// doubt: a rollout or a pause hides a failure that Lockstep has not noted yet, because it ended before.
func (m *FleetModel) doubt(key string) {
	for _, failed := range m.failures {
		if f, ok := failed[key]; ok && (f.late || f.unseen) {
			f.certain = false
			failed[key] = f
		}
	}
}

// progress reads the status.
func (m *FleetModel) progress(w *member) {
	done := w.Status.Done && w.Replicas > 0 && !w.Paused
	switch {
	case done && w.done.IsZero():
		w.done = m.now
		if !w.ended.After(m.known()) {
			w.lost = time.Time{}
		}
	case !done && !w.done.IsZero():
		w.lost, w.ended, w.done = m.earliest(w), m.now, time.Time{}
	}
	t := w.trial
	if t == nil {
		return
	}
	if reached := [2]int{w.Status.Updated, w.Status.Available}; slices.Compare(reached[:], t.reached[:]) > 0 {
		t.reached, t.progressed = reached, m.now
	}
	if t.failed = w.Status.GivenUp; t.failed {
		t.over = true // even if it recovers
		m.fail(w, w.trial.healthy && !w.Paused)
	}
}

// fail notes that a workload failed with the contents of its trial, beyond doubt or not. After a
// restart Lockstep may not know that the workload was healthy with others.
func (m *FleetModel) fail(w *member, certain bool) {
	for source, given := range w.given {
		contents, isOnTrial := w.trial.contents[source]
		for _, content := range append(slices.Clip(contents), given...) {
			isCurrent := m.sources[place{w.Namespace, source}].content.now == content
			m.failWith(w, m.changeOf(w.Namespace, source, content), certain && isOnTrial && isCurrent && len(contents) == 1)
		}
	}
}

func (m *FleetModel) failWith(w *member, c change, certain bool) {
	key := w.Namespace + "/" + w.Name
	if m.failures[c] == nil {
		m.failures[c] = map[string]failure{}
	}
	if !m.failures[c][key].certain {
		able := m.failures[c][key].able || w.trial.healthy || w.trial.mayBe
		m.failures[c][key] = failure{at: m.now, certain: certain, able: able, unseen: !m.blind.IsZero()}
	}
}

// isAble reports whether the workload is healthy beyond doubt: Lockstep must have seen it so for
// the settle time.
func (m *FleetModel) isAble(w *member) bool {
	paused, certain := w.paused.certain(m.known())
	return !w.done.IsZero() && w.Replicas > 0 && !paused && certain && !w.done.Add(m.rules.Settle).After(m.known())
}

// mayBeAble reports whether Lockstep may take the workload for healthy, or for healthy before a
// rollout that goes on.
func (m *FleetModel) mayBeAble(w *member) bool {
	since, seen := m.earliest(w), !w.done.IsZero() || w.ended.After(m.known())
	if resumed := w.paused.since; w.paused.before && resumed.Before(since) && since.Sub(resumed) <= seenWithin {
		since = resumed // its pods were available, and only its controller hasn't acted on the resume
	}
	return w.trial != nil && w.trial.mayBe || seen && !since.IsZero() && !since.Add(m.rules.Settle).After(m.now)
}

// earliest is since when Lockstep can take the workload for done.
func (m *FleetModel) earliest(w *member) time.Time {
	if !w.lost.IsZero() {
		return w.lost
	}
	return w.done
}

// String shows the fleet, for a user who reads a failure.
func (m *FleetModel) String() string {
	lines := []string{fmt.Sprintf("the fleet at %s, seen until %s, %+v, stop %+v:", m.now.Format("15:04:05.000"), m.known().Format("15:04:05.000"), m.rules, m.stop.now)}
	for _, key := range slices.Sorted(maps.Keys(m.members)) {
		w := m.members[key]
		line := fmt.Sprintf("  %s given %v, done since %s, replicas %d, paused %t, %+v", key, w.given, w.done.Format("15:04:05.000"), w.Replicas, w.Paused, w.Wishes)
		if w.trial != nil {
			line += fmt.Sprintf(", on trial %v, healthy before %t, failed %t, progressed %s", w.trial.contents, w.trial.healthy, w.trial.failed, w.trial.progressed.Format("15:04:05"))
		}
		lines = append(lines, line)
	}
	for at, s := range m.sources {
		lines = append(lines, fmt.Sprintf("  %s in %s: %q since %s, hurry %t", at.source, at.namespace, s.content.now, s.content.since.Format("15:04:05.000"), s.hurry.now))
	}
	for c, failed := range m.failures {
		lines = append(lines, fmt.Sprintf("  %v failed on %v", c, failed))
	}
	return strings.Join(lines, "\n")
}
