package histories

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// forbidden returns why Lockstep must not have rolled out a workload.
func (m *FleetModel) forbidden(w *member, next FleetWorkload) error {
	if err := m.closed(w); err != nil {
		return err
	}
	for _, source := range Uses()[w.Namespace+"/"+w.Name] {
		shown := next.Shows[source]
		if shown == "" || slices.Contains(w.given[source], shown) {
			continue
		}
		c := m.changeOf(w.Namespace, source, shown)
		for _, rule := range []func(*member, change) error{m.stopped, m.overtakes, m.crowds, m.runsAhead} {
			if err := rule(w, c); err != nil {
				return fmt.Errorf("%s/%s got %v: %w", w.Namespace, w.Name, c, err)
			}
		}
	}
	return nil
}

// closed: gates that hold every change of a workload.
func (m *FleetModel) closed(w *member) error {
	known := m.known()
	name := w.Namespace + "/" + w.Name
	if s, certain := m.stop.certain(known.Add(seenWithin - 5*time.Second)); certain && s.stops(w.Namespace) {
		return fmt.Errorf("the controller rolled out %s, and an operator has stopped that", name)
	}
	if wishes, certain := w.wishes.certain(known); certain && wishes.Held {
		return fmt.Errorf("the controller rolled out %s, which is held", name)
	}
	if ns, certain := m.places[w.Namespace].certain(known); certain && ns.Held {
		return fmt.Errorf("the controller rolled out %s, whose namespace is held", name)
	}
	if wishes, certain := w.wishes.certain(known); certain && wishes.isLong() {
		return fmt.Errorf("the controller rolled out %s in its quiet window", name)
	}
	if window, certain := m.window(w); certain && !window.IsOpen(m.now) {
		return fmt.Errorf("the controller rolled out %s outside of its window", name)
	}
	return nil
}

// window is the one that counts for a workload: its own, that of its namespace, or that of the
// controller.
func (m *FleetModel) window(w *member) (window Window, certain bool) {
	wishes, own := w.wishes.certain(m.known())
	ns, others := m.places[w.Namespace].certain(m.known())
	window = m.rules.Window
	switch {
	case wishes.Windowed:
		window = wishes.Window
	case ns.Windowed:
		window = ns.Window
	}
	return window, own && others
}

// stopped: a version that failed on healthy workloads goes to no other one.
func (m *FleetModel) stopped(w *member, c change) error {
	if m.rules.StopAfter == 0 || m.sources[place{w.Namespace, c.source}].resumed[c.content] {
		return nil
	}
	var failed []string
	for _, key := range slices.Sorted(maps.Keys(m.failures[c])) {
		f := m.failures[c][key]
		// Without pods it takes no turn, so it learns only from the record, which a restart may precede.
		isLearned := w.Replicas > 0 || !f.late || m.now.Sub(m.sight) > seenWithin
		if f.certain && isLearned && !f.at.After(m.known()) {
			failed = append(failed, key)
		}
	}
	if len(failed) < m.rules.StopAfter {
		return nil
	}
	return fmt.Errorf("the version had failed on %v", failed)
}

// overtakes: a workload waits for the one that its annotation names, while that has the change
// ahead of it.
func (m *FleetModel) overtakes(w *member, c change) error {
	wishes, certain := w.wishes.certain(m.known())
	first, ok := m.members[w.Namespace+"/"+wishes.After]
	if !certain || wishes.After == "" || !ok {
		return nil
	}
	_, isRolling := m.rolls(first, c)
	isDue := slices.Contains(Uses()[first.Namespace+"/"+first.Name], c.source) && m.isDue(first, c) && m.isFree(first)
	if isRolling || isDue {
		return fmt.Errorf("%s goes first, and has not finished it", wishes.After)
	}
	return nil
}

// isDue reports whether the workload certainly doesn't have the content.
func (m *FleetModel) isDue(w *member, c change) bool {
	given := w.given[c.source]
	content, certain := m.sources[place{w.Namespace, c.source}].content.certain(m.known())
	return len(given) == 1 && given[0] != c.content && certain && content == c.content
}

// isFree reports whether certainly nothing but its turn is in the way of a workload.
func (m *FleetModel) isFree(w *member) bool {
	known := m.known()
	wishes, c1 := w.wishes.certain(known)
	paused, c2 := w.paused.certain(known)
	ns, c3 := m.places[w.Namespace].certain(known)
	stop, c4 := m.stop.certain(known)
	window, c5 := m.window(w)
	if !c1 || !c2 || !c3 || !c4 || !c5 || wishes.Held || paused || ns.Held || stop.stops(w.Namespace) || !window.IsOpen(m.now) || !window.IsOpen(known) {
		return false
	}
	return m.rules.Damping == 0 && !m.mayBeQuiet(w, wishes.Quiet) && m.mayNotFail(w)
}

// mayBeQuiet reports whether the quiet window of a workload may not be over. A restart may begin it anew.
func (m *FleetModel) mayBeQuiet(w *member, quiet time.Duration) bool {
	return quiet > 0 && slices.ContainsFunc(Uses()[w.Namespace+"/"+w.Name], func(source string) bool {
		since := m.sources[place{w.Namespace, source}].content.since
		if m.sight.After(since) {
			since = m.sight
		}
		return !since.Add(quiet).Before(m.known())
	})
}

// mayNotFail reports whether certainly none of the workload's versions is stopped.
func (m *FleetModel) mayNotFail(w *member) bool {
	return !slices.ContainsFunc(m.current(w), func(c change) bool { return len(m.failures[c]) > 0 })
}

// isAwaited reports whether certainly a user wants the workload to be the first with a change, and nothing
// is in its way that doesn't end by itself.
func (m *FleetModel) isAwaited(w *member, c change) bool {
	known := m.known()
	wishes, c1 := w.wishes.certain(known)
	paused, c2 := w.paused.certain(known)
	ns, c3 := m.places[w.Namespace].certain(known)
	stop, c4 := m.stop.certain(known)
	if !c1 || !c2 || !c3 || !c4 || !wishes.First || wishes.Held || wishes.After != "" || paused || ns.Held || stop.stops(w.Namespace) {
		return false
	}
	return m.isAble(w) && m.isDue(w, c) && m.mayNotFail(w)
}

// mayBeAwaited reports whether Lockstep may let healthy workloads wait for this one.
func (m *FleetModel) mayBeAwaited(w *member, c change) bool {
	return (w.wishes.now.First || w.wishes.before.First) && slices.Contains(Uses()[w.Namespace+"/"+w.Name], c.source) && !slices.Equal(w.given[c.source], []string{c.content})
}

// rolls reports whether a workload certainly has a turn of a change, and whether it was healthy
// when it got it.
func (m *FleetModel) rolls(w *member, c change) (able, rolls bool) {
	t := w.trial
	if t == nil || t.over || m.isFreed(w) || w.Replicas == 0 {
		return false, false
	}
	contents := t.contents[c.source]
	able, rolls = t.able[c.source]
	if !rolls || m.sources[place{w.Namespace, c.source}].content.now != c.content { // its own copy has changed again
		return false, false
	}
	if len(contents) != 1 || m.changeOf(w.Namespace, c.source, contents[0]) != c {
		return false, false
	}
	return able, true
}

// isFreed reports whether another workload may have the place of this one. The API server's
// times are a second coarse.
func (m *FleetModel) isFreed(w *member) bool {
	const coarse = 2 * time.Second
	if w.Paused && m.now.Sub(w.paused.since) >= m.rules.PauseGrace-coarse {
		return true
	}
	return m.now.Sub(w.trial.progressed) >= m.rules.Timeout-coarse
}

// users are the workloads that use a change, in order.
func (m *FleetModel) users(c change) []*member {
	var all []*member
	for _, key := range Workloads() {
		w := m.members[key]
		if slices.Contains(Uses()[key], c.source) && (c.namespace == "" || c.namespace == w.Namespace) {
			all = append(all, w)
		}
	}
	return all
}

// crowds: not more workloads than the budget roll for one change.
func (m *FleetModel) crowds(w *member, c change) error {
	if w.Replicas == 0 {
		return nil
	}
	all, here := 1, 1
	for _, other := range m.users(c) {
		if _, rolls := m.rolls(other, c); rolls && other != w {
			all++
			if other.Namespace == w.Namespace {
				here++
			}
		}
	}
	if m.rules.MaxRolling > 0 && all > m.rules.MaxRolling {
		return fmt.Errorf("%d roll at the same time", all)
	}
	if ns, certain := m.places[w.Namespace].certain(m.known()); certain && ns.Limit > 0 && here > ns.Limit {
		return fmt.Errorf("%d of namespace %s roll at the same time", here, w.Namespace)
	}
	return nil
}

// standings counts the users that are proven, those of them that certainly are, those that are
// about to prove the change beside the workload, those that could prove it, and names one that
// certainly goes first.
func (m *FleetModel) standings(users []*member, w *member, c change) (proven, certainly, proving, candidates int, first string) {
	isChosen := slices.ContainsFunc(users, func(u *member) bool { return m.mayBeAwaited(u, c) })
	for _, u := range users {
		able, rolls := m.rolls(u, c)
		isNext := m.isAble(u) && m.isDue(u, c) && m.isFree(u) && m.isAlone(u, c) && (!isChosen || u.wishes.now.First) && !m.mayBeLimited(u)
		isCertain, isProven := u.proven[c]
		hasIt := m.sources[place{u.Namespace, c.source}].content.now == c.content // and not another one in its own copy
		if isCertain && hasIt && slices.Equal(u.given[c.source], []string{c.content}) {
			certainly++
		}
		switch {
		case isProven:
			proven++
		case rolls && able && u != w:
			proving++
			candidates++
		case isNext:
			candidates++
		}
		if u != w && m.isAwaited(u, c) {
			first = u.Namespace + "/" + u.Name
		}
	}
	return proven, certainly, proving, candidates, first
}

// runsAhead: a change that many use goes to one workload, then to 2, then to 4, each step after
// the earlier ones are healthy. One that isn't healthy takes no step, and follows a proof.
func (m *FleetModel) runsAhead(w *member, c change) error {
	const together = 3
	hurry, certain := m.sources[place{w.Namespace, c.source}].hurry.certain(m.known())
	users := m.users(c)
	if !m.rules.Ramp || w.Replicas == 0 || hurry || !certain || len(users) <= together {
		return nil
	}
	proven, certainly, proving, candidates, first := m.standings(users, w, c)
	if proven == 0 && candidates == 0 && first == "" {
		return nil
	}
	if proven == 0 && first != "" && m.isAble(w) && !w.wishes.now.First && !w.wishes.before.First {
		return fmt.Errorf("%s goes first, and none is proven", first)
	}
	if proven == 0 && candidates > 0 && !m.isAble(w) && !m.mayBeAble(w) && !m.isOverdue(w, c) {
		return fmt.Errorf("it was not healthy before, and none is proven")
	}
	step := 1
	for 2*step-1 <= proven {
		step *= 2
	}
	isOpen := m.rules.MaxRolling > 0 && step >= m.rules.MaxRolling
	if !isOpen && certainly+proving >= 2*step-1 && (m.isAble(w) || proven == 0) {
		return fmt.Errorf("%d are proven, and %d of this step roll already", certainly, proving)
	}
	return nil
}

// isOverdue reports whether a workload may have waited for so long that it doesn't wait for a proof any more: it
// waited for as long as a stuck rollout keeps its place, or several times as long for whichever versions.
func (m *FleetModel) isOverdue(w *member, c change) bool {
	delay := cmp.Or(m.rules.MaxDelay, time.Minute)
	since := m.sources[place{w.Namespace, c.source}].content.since
	return m.now.Sub(since) >= max(delay, m.rules.Timeout) || !w.dueSince.IsZero() && m.now.Sub(w.dueSince) >= 5*(delay+m.rules.Timeout)
}

// mayBeLimited reports whether its namespace may keep a workload from rolling beside others.
func (m *FleetModel) mayBeLimited(w *member) bool {
	ns := m.places[w.Namespace]
	return ns.now.Limit > 0 || ns.before.Limit > 0
}

// isAlone reports whether the workload can go as far as its other changes and its order go: it
// has none.
func (m *FleetModel) isAlone(w *member, c change) bool {
	for _, source := range Uses()[w.Namespace+"/"+w.Name] {
		at := m.sources[place{w.Namespace, source}]
		if source != c.source && !slices.Equal(w.given[source], []string{at.content.now}) {
			return false
		}
	}
	return w.wishes.now.After == ""
}
