package histories

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reasons that Lockstep can wait for with a fleet, as in docs/reference/reasons.md.
const (
	reasonStopped        = "Stopped"
	reasonVersionStopped = "VersionStopped"
	reasonAwaitsTurn     = "AwaitsTurn"
	reasonAwaitsFirst    = "AwaitsFirst"
	reasonQuietWindow    = "QuietWindow"
	reasonAwaitsWindow   = "AwaitsWindow"
	reasonAwaitsWorkload = "AwaitsWorkload"
	reasonDamped         = "Damped"
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

// Endure checks, after hours in which users did nothing, that every workload has its good versions unless
// something of its own is in the way. Only a healthy workload may wait for the one that a user wants to be the
// first, and says so.
func (m *FleetModel) Endure(reasons map[string]string, at time.Time) error {
	m.advance(at)
	for _, key := range Workloads() {
		w := m.members[key]
		due, reason := m.dueFor(w), reasons[key]
		isBad := func(c change) bool { return !strings.HasPrefix(c.content, "good") }
		window, _ := m.window(w)
		isTold := reason == reasonAwaitsFirst || reason == reasonAwaitsWindow && !window.IsOpen(at) // it says so while the window is open
		if len(due) == 0 || slices.ContainsFunc(m.current(w), isBad) || m.isObstructed(w) || m.mayAwaitFirst(w, due) && isTold {
			continue
		}
		return fmt.Errorf("%s has been due for hours, nothing of its own is in the way of %v, and Lockstep says %s\n%s", key, due, reason, m)
	}
	return nil
}

// isObstructed reports whether something of its own stays in the way of a workload.
func (m *FleetModel) isObstructed(w *member) bool {
	first, ordered := m.members[w.Namespace+"/"+w.Wishes.After]
	mayBeStopped := func(c change) bool { return m.rules.StopAfter > 0 && m.failed(c) >= m.rules.StopAfter }
	awaits := func(w *member) bool { return m.awaitsUser(w) || slices.ContainsFunc(m.current(w), mayBeStopped) }
	return awaits(w) || w.Wishes.isLong() || ordered && !awaits(first) && m.isObstructed(first) && len(m.dueFor(first)) > 0
}

// awaitsUser reports whether certainly a user has to act before a workload is rolled out.
func (m *FleetModel) awaitsUser(w *member) bool {
	isStopped := func(c change) bool { return m.stopped(w, c) != nil }
	return w.Wishes.Held || w.Paused || m.places[w.Namespace].now.Held || m.stop.now.stops(w.Namespace) || slices.ContainsFunc(m.dueFor(w), isStopped)
}

// mayAwaitFirst reports whether a workload that may be healthy has to wait for the one that a user wants to be
// the first with one of the changes.
func (m *FleetModel) mayAwaitFirst(w *member, due []change) bool {
	return m.mayBeAble(w) && slices.ContainsFunc(due, func(c change) bool {
		return slices.ContainsFunc(m.users(c), func(u *member) bool {
			return u != w && u.Wishes.First && !m.awaitsAnother(u, c) && !m.awaitsUser(u) && m.mayBeAble(u) && slices.Contains(m.dueFor(u), c)
		})
	})
}

// awaitsAnother reports whether certainly another workload goes before this one with a change.
func (m *FleetModel) awaitsAnother(w *member, c change) bool {
	first, ok := m.members[w.Namespace+"/"+w.Wishes.After]
	return ok && slices.Contains(m.dueFor(first), c)
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
		return m.mayAwaitTurn(due, reasons) || m.mayAwaitHealthy(w)
	case reasonAwaitsFirst:
		return m.mayAwaitFirst(w, due)
	case reasonQuietWindow:
		return w.Wishes.isLong()
	case reasonDamped:
		return m.rules.Damping > 0
	}
	return false
}

// failed counts the workloads that can have been healthy before they failed with a change. Its content may have
// returned.
func (m *FleetModel) failed(c change) int {
	all := map[*member]bool{}
	for key, f := range m.failures[c] {
		if f.able {
			all[m.members[key]] = true
		}
	}
	for _, u := range m.users(c) {
		onTrial := u.trial != nil && slices.Contains(u.trial.contents[c.source], c.content) && (u.trial.healthy || u.trial.mayBe)
		if u.Status.GivenUp && onTrial {
			all[u] = true
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

// mayAwaitHealthy reports whether a workload can still wait for a healthy one to begin.
func (m *FleetModel) mayAwaitHealthy(w *member) bool {
	const late = time.Minute
	since := m.sight
	for _, at := range []time.Time{w.wishes.since, w.paused.since, m.places[w.Namespace].since, m.stop.since, w.ended} {
		if at.After(since) {
			since = at
		}
	}
	for _, c := range m.current(w) {
		for _, namespace := range Namespaces() {
			if s := m.sources[place{namespace, c.source}]; s != nil && s.content.since.After(since) {
				since = s.content.since
			}
		}
	}
	mayWait := !m.isAble(w) || m.mayAwaitFirst(w, m.dueFor(w)) // the chosen one may not be known to wait yet
	return m.rules.Ramp && mayWait && m.now.Sub(since) < m.rules.MaxDelay+late
}

// mayRoll reports whether Lockstep can still wait for the end of a workload's rollout.
func (m *FleetModel) mayRoll(w *member, c change) bool {
	const late = time.Minute // longer than any of its own delays
	t := w.trial
	if t == nil || t.failed && !w.Paused { // a pause hides the failure
		return false
	}
	since := t.progressed
	if m.sight.After(since) { // a restart begins to count anew
		since = m.sight
	}
	waits := m.now.Sub(since) < m.rules.Timeout+late || w.Paused && m.now.Sub(w.paused.since) < m.rules.PauseGrace+late
	return waits && slices.ContainsFunc(t.contents[c.source], func(content string) bool { return m.changeOf(w.Namespace, c.source, content) == c })
}
