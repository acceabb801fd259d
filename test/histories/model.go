package histories

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// goneFor is how long the record of a deleted workload counts.
const goneFor = 10 * time.Minute

// Model is what the rules make of a history. It reads facts and says what Lockstep did
// against the rules. Where the rules leave Lockstep a choice, because it cannot have seen
// in which order two things happened, the model allows both until Lockstep shows which.
type Model struct {
	sources  map[string]*source
	workload *Workload
	hold     hold
	// running is the template that pods are made from; it differs from the workload's
	// while that is paused.
	running   string
	revisions revisions
	gone      gone
	// takenOver is true when another workload took over the revisions of one that is gone,
	// since the last settlement. After a further rollout nothing tells that any more.
	takenOver bool
	// unsettled is true from when a workload is made until the next settlement.
	unsettled bool
	releases  releases

	// blind is true while Lockstep sees no writes; pauseUnseen when that was so during the
	// present pause, so that it cannot know from which template the pods were made.
	blind, pauseUnseen bool
	// settled is the model at the last settlement, and since are the facts from there on:
	// when Lockstep is killed, it may have seen any part of them.
	settled *Model
	since   []Fact

	// rollouts is how many Lockstep has made, rolledOut whether another writer has made one
	// since the last settlement.
	rollouts  int
	rolledOut bool
}

// NewModel makes the model of a workload that Lockstep has not seen yet.
func NewModel(h History) *Model {
	m := &Model{
		sources: map[string]*source{},
		revisions: revisions{
			canary: h.Canary, stateful: h.Stateful,
			made: map[string]time.Time{}, numbers: map[string][]int64{}, shows: map[string]map[string]string{}, loaded: map[string]map[string]string{},
		},
	}
	for _, name := range []string{ConfigMap, Secret} {
		m.sources[name] = &source{}
	}
	return m
}

// SetBlind says whether Lockstep sees no writes, because it is down or its watches are.
func (m *Model) SetBlind(blind bool) {
	m.blind = blind
	m.pauseUnseen = m.pauseUnseen || blind && m.workload != nil && m.workload.Paused
}

// Interrupt says that Lockstep was killed, or that its watches ended: what happened since
// the last settlement may not be on record, or was not seen. One that goes on decides by
// what it saw last.
func (m *Model) Interrupt(killed bool) error {
	if m.settled == nil {
		return nil
	}
	defer func() {
		for _, s := range m.sources {
			if s.saw = ""; !killed {
				s.saw = s.content
			}
		}
	}()
	again := m.settled.clone()
	again.settled, again.blind, again.rollouts = m.settled, true, m.settled.rollouts
	facts := m.since
	for _, f := range facts {
		if err := again.Observe(f); err != nil {
			return err
		}
	}
	*m = *again
	return nil
}

// Rollouts is how many rollouts Lockstep has made.
func (m *Model) Rollouts() int {
	return m.rollouts
}

// Observe takes a fact into account. The error says which rule Lockstep has broken.
func (m *Model) Observe(f Fact) error {
	m.since = append(m.since, f)
	m.note(f)
	switch {
	case f.Source != "":
		m.write(f)
		return nil
	case f.Workload == nil:
		m.delete(f)
		return nil
	case m.workload == nil:
		m.make(f)
		return nil
	}
	old := *m.workload
	m.workload = f.Workload
	if m.pauseUnseen && !f.Workload.Paused {
		m.doubt()
	}
	m.pauseUnseen = m.pauseUnseen && old.Paused || m.blind && f.Workload.Paused
	if !f.Lockstep {
		m.hold.write(old, *f.Workload, len(m.revisions.numbers[f.Workload.Template]) > 0)
	}
	switch {
	case f.Lockstep:
		return m.countRollout(old, f.Early)
	case old.Template != f.Workload.Template:
		used := len(m.revisions.numbers[f.Workload.Template]) > 0
		m.number(f.Workload.Template, !f.Workload.Paused)
		if f.Workload.Paused {
			m.edited()
		} else {
			m.rolled(rollout{m.last(old.Template), old.Older && used, old.Beside == f.Workload.Template})
		}
	case old.Paused && !f.Workload.Paused && m.running != f.Workload.Template:
		before := m.last(m.running)
		m.number(f.Workload.Template, true)
		m.rolled(rollout{before: before, kept: old.Running})
	case old.Stable != f.Workload.Stable:
		m.aborted()
	}
	if f.Workload.Release > m.releases.last {
		m.release()
	}
	if old.Left && !f.Workload.Left {
		m.ask()
	}
	return nil
}

// write is one of a source.
func (m *Model) write(f Fact) {
	s := m.sources[f.Source]
	s.rewritten = s.rewritten || m.rolledOut && s.content != f.Content
	s.write(f, m.blind)
	if m.blind && m.rolledOut && s.content != "" { // pods may have loaded another content that has gone back
		s.add(belief{delivered: Unknown})
	}
}

// note keeps what a template shows, and when it was new.
func (m *Model) note(f Fact) {
	if f.Workload == nil {
		return
	}
	m.revisions.shows[f.Workload.Template] = f.Workload.Shows
	if len(m.revisions.numbers[f.Workload.Template]) == 0 {
		m.revisions.made[f.Workload.Template] = f.At
	}
}

// doubt: a pause ends during which Lockstep could not see which template pods were made from.
// A content that has changed may have been loaded, and any other one before it.
func (m *Model) doubt() {
	for _, s := range m.sources {
		if s.mayBe(belief.differs, s.content) {
			s.add(belief{delivered: Unknown})
		}
	}
}

// ask: what exists when a workload begins to be followed is taken as given.
func (m *Model) ask() {
	for _, s := range m.sources {
		s.beliefs = []belief{{delivered: s.content}}
	}
}

// make: a workload that took over the revisions of another one goes on with its record;
// of any other what exists is taken as given.
func (m *Model) make(f Fact) {
	m.workload, m.unsettled = f.Workload, true
	m.hold.make()
	if m.gone.at.IsZero() {
		m.revisions.numbers, m.revisions.made = map[string][]int64{}, map[string]time.Time{f.Workload.Template: f.At}
	}
	inTime, usedBefore := f.At.Sub(m.gone.at) < goneFor, len(m.revisions.numbers[f.Workload.Template]) > 0 || f.Workload.Paused
	m.takenOver = !m.gone.at.IsZero() && inTime && usedBefore
	maybe := m.gone.unseen
	m.number(f.Workload.Template, !f.Workload.Paused)
	if !m.takenOver {
		m.load()
	}
	// Versions only grow: an undo may bring back a release from before.
	m.releases.last, m.pauseUnseen = max(m.releases.last, f.Workload.Release), f.Workload.Paused
	for name, s := range m.sources {
		s.overwritten = append(s.overwritten, s.unrecorded...) // nothing tells who wrote its template
		s.each(func(b belief) []belief {
			switch {
			case m.takenOver && m.gone.unsettled:
				// The baseline of that one may be what a broken watch saw last.
				return []belief{b, m.judged(name, b), {delivered: s.content}, {delivered: m.settled.sources[name].content}}
			case m.takenOver && m.blind:
				return []belief{b, m.judged(name, b)}
			case m.takenOver && m.gone.aborted:
				return []belief{m.judged(name, b)}
			case m.takenOver:
				return []belief{b}
			case maybe:
				return []belief{b, m.judged(name, b), {delivered: s.content}}
			}
			return []belief{{delivered: s.content}}
		})
		if len(s.beliefs) == 0 { // the first one
			s.add(belief{delivered: s.content})
		}
		if s.touched && (m.blind || m.takenOver) { // each kind is listed by itself: which of the two came first cannot be told
			s.add(belief{delivered: Unknown})
		}
		s.unseen = !m.takenOver || m.gone.unsettled
	}
}

func (m *Model) delete(f Fact) {
	m.gone.aborted, m.gone.unsettled = m.workload.Stable != "", m.blind && m.unsettled
	m.workload, m.gone.at, m.gone.unseen = nil, time.Time{}, m.blind
	if f.Orphaned {
		m.gone.at = f.At
	}
}

// rollout is one of another writer, after the revision of that number.
type rollout struct {
	before int64
	// kept is true when it uses a revision of which pods may have run all along, and goesOn
	// when they did: it ends a canary, whose stable pods go on.
	kept, goesOn bool
}

// rolled: another writer's rollout loads what exists, and so delivers what is due. What it
// does not deliver was reverted when pods are made from a revision that was there
// before, and that shows another version.
func (m *Model) rolled(r rollout) {
	m.rolledOut = true
	if !r.goesOn {
		m.load()
	}
	for name, s := range m.sources {
		s.each(func(b belief) []belief {
			b.gave = "" // pods of this rollout have loaded what exists
			next := m.delivered(name, m.judgements(name, b), r)
			if s.saw != "" && s.saw != s.content && s.saw != b.delivered { // not all watches need to have ended
				next = append(next, belief{delivered: s.saw, from: r.before, guessed: true})
			}
			return next
		})
		m.forget(name, s)
		m.mistake(name, s)
		if m.takenOver {
			s.add(belief{delivered: s.content})
			s.unseen = s.unseen || m.blind
		}
	}
}

// delivered adds to the judgements of a belief that the rollout delivered what exists.
// Lockstep cannot know what a rollout delivered that it did not see, nor whether one
// delivered anything of which pods may have run all along. Pods that went on have what they
// had.
func (m *Model) delivered(name string, judged []belief, r rollout) []belief {
	s := m.sources[name]
	goOn, isGiven := r.goesOn && !m.blind, judged[0].delivered == s.content || s.content == ""
	if isGiven && m.blind && s.touched && s.content != "" && !judged[0].back {
		// Each kind is listed by itself: at the rollout the content may have been another one.
		judged = append(judged, belief{delivered: Unknown})
	}
	for i := range judged {
		switch {
		case goOn:
			judged[i].late = ""
		case !isGiven && !m.blind && !m.pauseUnseen && !r.kept:
			judged[i].late = s.content
		}
	}
	if isGiven || goOn && m.revisions.loaded[m.workload.Template][name] != s.content {
		return judged
	}
	delivers := belief{delivered: s.content, from: r.before}
	if s.doubted = (belief{}); r.kept {
		s.doubted = delivers
	}
	return append(judged, delivers)
}

// load: pods of the template start, and load what exists.
func (m *Model) load() {
	contents := map[string]string{}
	for name, s := range m.sources {
		contents[name] = s.content
	}
	m.revisions.loaded[m.workload.Template] = contents
}

// aborted: pods are made from the stable revision, or no longer. That delivers nothing. What
// the canary may have delivered it did: its pods were not those that went on.
func (m *Model) aborted() {
	for name, s := range m.sources {
		s.each(func(b belief) []belief { return m.judgements(name, b) })
		if s.doubted.delivered != "" && s.doubted.delivered == s.content {
			s.add(m.judged(name, s.doubted))
		}
	}
}

// judgements are what Lockstep can make of a belief when pods are made from another
// revision: a release may be carried out before that or after it.
func (m *Model) judgements(name string, b belief) []belief {
	all := []belief{m.judged(name, b)}
	if m.releases.accepting || m.releases.accepted == m.workload.Template || all[0].back && m.inDoubt(b.from) {
		all = append(all, belief{delivered: b.delivered, from: b.from, late: b.late})
	}
	return all
}

// mistake: a rollout that Lockstep did not see, and that led to the template of before,
// looks as if nothing had happened. It does not after a patch of Lockstep that is not on
// record: the revision of that one is left.
func (m *Model) mistake(name string, s *source) {
	before := m.settled
	if !m.blind || before == nil || before.workload == nil || before.workload.Template != m.workload.Template || before.rollouts < m.rollouts {
		return
	}
	for _, b := range before.sources[name].beliefs {
		s.add(b)
	}
}

// edited: a template that is changed during a pause delivers nothing. Whether it takes
// something back shows after the resume.
func (m *Model) edited() {
	for name, s := range m.sources {
		s.each(func(b belief) []belief {
			return []belief{b, m.judged(name, b), {delivered: b.delivered, from: b.from, late: b.late}}
		})
		m.forget(name, s)
	}
}

// forget: what happens while Lockstep cannot see it hides what happened before, and a
// revision that is used again looks as if it had been made for what it shows.
func (m *Model) forget(name string, s *source) {
	if !m.blind {
		return
	}
	s.overwritten = append(s.overwritten, s.unrecorded...)
	if shows, does := m.workload.Shows[name]; does {
		s.overwritten = append(s.overwritten, shows)
	}
}

// judged is whether the version on record was reverted. The very revision that gave it
// may be one that was used again.
func (m *Model) judged(name string, b belief) belief {
	current := cmp.Or(m.workload.Stable, m.workload.Template)
	numbers := m.revisions.numbers[current]
	had := !slices.Contains(numbers, b.from+1) && slices.ContainsFunc(numbers, func(n int64) bool { return n <= b.from })
	shows, does := m.revisions.shows[current][name]
	b.back = had && (!does || shows != b.delivered)
	return b
}

// inDoubt reports whether names and times do not tell that the workload had its revision
// before the rollout that came after that number: the revision before that rollout is another
// one, and was not certainly made later. Times are a second coarse, and those of the
// revisions a little later than those of the templates.
func (m *Model) inDoubt(from int64) bool {
	if !m.revisions.stateful || slices.Contains(m.revisions.numbers[m.workload.Template], from) {
		return false
	}
	for template, numbers := range m.revisions.numbers {
		if slices.Contains(numbers, from) {
			return m.revisions.made[template].Sub(m.revisions.made[m.workload.Template]) < 2*time.Second
		}
	}
	return true
}

// release: a person accepts what was reverted.
func (m *Model) release() {
	m.releases.last, m.releases.accepting, m.releases.accepted = m.workload.Release, true, m.workload.Template
	m.hold.release()
	for _, s := range m.sources {
		s.each(func(b belief) []belief {
			next := []belief{{delivered: b.delivered, from: b.from, late: b.late}}
			if m.workload.Paused { // an edited template is judged again after the resume
				next = append(next, b)
			}
			return next
		})
	}
}

// countRollout: Lockstep has written the template, which is against the rules when nothing was
// due, or when something stood in the way.
func (m *Model) countRollout(old Workload, early bool) error {
	m.rollouts++
	err := m.forbidden(old)
	if err == nil && old.Stable != "" && old.Stable == m.workload.Template {
		err = fmt.Errorf("the controller went back to the stable template of an aborted canary, whose pods may have loaded what was between:\n%s", m)
	}
	if early {
		m.unnumber(old.Template)
	}
	// A ControllerRevision that is used again keeps its name and its time, and without numbers
	// nothing tells that one which shows the same as another was not made by another writer:
	// when the process ends, and the patch is undone, nothing is left of it.
	leavesNoTrace := m.revisions.stateful && m.blind && (len(m.revisions.numbers[m.workload.Template]) > 0 || maps.Equal(old.Shows, m.workload.Shows))
	before := m.newest()
	m.number(m.workload.Template, true)
	m.load()
	for name, s := range m.sources {
		s.unshown = s.unshown && m.workload.Shows[name] != s.content
		if s.content == "" { // pods wait for it, and load what comes back
			s.overwritten = append(s.overwritten, s.unrecorded...)
		}
		if m.blind {
			s.each(func(b belief) []belief {
				s.unrecorded = append(s.unrecorded, b.delivered)
				return []belief{b}
			})
		}
		s.each(func(b belief) []belief {
			next := s.patched(b, m.workload.Shows[name], before)
			if leavesNoTrace {
				next = append(next, b)
			}
			return next
		})
	}
	return err
}

func (m *Model) clone() *Model {
	c := *m
	c.sources, c.since = map[string]*source{}, nil
	for name, s := range m.sources {
		copied := *s
		copied.beliefs, copied.unrecorded, copied.overwritten = slices.Clone(s.beliefs), slices.Clone(s.unrecorded), slices.Clone(s.overwritten)
		c.sources[name] = &copied
	}
	c.revisions = m.revisions.clone()
	return &c
}

// String is what the model knows, for people who look at a failure.
func (m *Model) String() string {
	var b strings.Builder
	if m.workload != nil {
		fmt.Fprintf(&b, "  workload: held=%t paused=%t aborted=%t revisions %v\n", m.workload.Held, m.workload.Paused, m.workload.Stable != "", m.revisions.numbers[m.workload.Template])
	}
	for _, name := range []string{ConfigMap, Secret} {
		s := m.sources[name]
		fmt.Fprintf(&b, "  %s is %q, held=%t; given can be", name, s.content, s.held)
		for _, belief := range s.beliefs {
			fmt.Fprintf(&b, " [%q after revision %d, reverted: %t]", belief.delivered, belief.from, belief.back)
		}
		b.WriteString("\n")
	}
	return b.String()
}
