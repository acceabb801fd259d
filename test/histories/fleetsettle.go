package histories

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Reasons that Lockstep can wait for with a fleet, as in docs/reference/reasons.md.
const (
	reasonStopped        = "Stopped"
	reasonVersionStopped = "VersionStopped"
	reasonAwaitsTurn     = "AwaitsTurn"
	reasonAwaitsWindow   = "AwaitsWindow"
	reasonAwaitsWorkload = "AwaitsWorkload"
)

// Settle compares the reason that Lockstep gives for each workload, once it had time to decide
// on everything, with the rules: what is due and can go has gone.
func (m *FleetModel) Settle(reasons map[string]string, at time.Time) error {
	m.advance(at)
	for _, key := range Workloads() {
		w := m.members[key]
		due := m.dueFor(w)
		if len(due) > 0 && !m.mayWait(w, reasons) {
			return fmt.Errorf("%s is due for %v, and Lockstep says %s without cause\n%s", key, due, reasons[key], m)
		}
	}
	return nil
}

// dueFor are the changes that the workload certainly doesn't have.
func (m *FleetModel) dueFor(w *member) []change {
	return slices.DeleteFunc(m.current(w), func(c change) bool { return slices.Contains(w.given[c.source], c.content) })
}

// current are the changes that the workload has or is due for. Lockstep may not know which.
func (m *FleetModel) current(w *member) []change {
	var all []change
	for _, source := range Uses()[w.Namespace+"/"+w.Name] {
		all = append(all, m.changeOf(w.Namespace, source, m.sources[place{w.Namespace, source}].content.now))
	}
	return all
}

// mayWait reports whether the rules know the reason for which a workload waits.
func (m *FleetModel) mayWait(w *member, reasons map[string]string) bool {
	window, _ := m.window(w)
	due := m.current(w)
	switch reasons[w.Namespace+"/"+w.Name] {
	case reasonHeld:
		return w.Wishes.Held || m.places[w.Namespace].now.Held
	case reasonPaused:
		return w.Paused
	case reasonStopped:
		return m.stop.now.stops(w.Namespace)
	case reasonAwaitsWindow:
		return !window.IsOpen(m.now)
	case reasonVersionStopped:
		return slices.ContainsFunc(due, func(c change) bool { return m.failed(c) >= m.rules.StopAfter })
	case reasonAwaitsWorkload:
		first, ok := m.members[w.Namespace+"/"+w.Wishes.After]
		return ok && slices.ContainsFunc(due, func(c change) bool { return m.mayRoll(first, c) || slices.Contains(m.dueFor(first), c) })
	case reasonAwaitsTurn:
		return m.mayAwaitTurn(due, reasons)
	}
	return false
}

// failed counts the workloads that can have failed with a change. Its content may have returned.
func (m *FleetModel) failed(c change) int {
	all := maps.Clone(m.failures[c])
	for _, u := range m.users(c) {
		onTrial := u.trial != nil && slices.Contains(u.trial.contents[c.source], c.content)
		if u.Status.GivenUp && (onTrial || slices.Contains(u.given[c.source], c.content)) {
			if all == nil {
				all = map[string]failure{}
			}
			all[u.Namespace+"/"+u.Name] = failure{}
		}
	}
	return len(all)
}

// mayAwaitTurn reports whether a workload rolls for one of the changes, or for a change of
// another workload that waits for its turn with it.
func (m *FleetModel) mayAwaitTurn(due []change, reasons map[string]string) bool {
	for i := 0; i < len(due); i++ {
		for _, u := range m.users(due[i]) {
			if m.mayRoll(u, due[i]) {
				return true
			}
			others := m.dueFor(u)
			if reasons[u.Namespace+"/"+u.Name] != reasonAwaitsTurn || !slices.Contains(others, due[i]) {
				continue
			}
			for _, c := range others {
				if !slices.Contains(due, c) {
					due = append(due, c)
				}
			}
		}
	}
	return false
}

// mayRoll reports whether Lockstep can still wait for the end of a workload's rollout.
func (m *FleetModel) mayRoll(w *member, c change) bool {
	const late = time.Minute // longer than any of its own delays
	t := w.trial
	if t == nil || t.failed {
		return false
	}
	since := t.progressed
	if m.sight.After(since) { // a restart begins to count anew
		since = m.sight
	}
	waits := m.now.Sub(since) < m.rules.Timeout+late || w.Paused && m.now.Sub(w.paused.since) < m.rules.PauseGrace+late
	return waits && slices.ContainsFunc(t.contents[c.source], func(content string) bool { return m.changeOf(w.Namespace, c.source, content) == c })
}
