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

// Model applies the rules to a history. It reads facts and reports where Lockstep broke the
// rules. Where the rules leave Lockstep a choice, because it can't have seen the order of
// two events, the model allows both until Lockstep shows which one it assumed.
type Model struct {
	sources  map[string]*source
	workload *Workload
	hold     hold
	// running is the template that pods are made from; it differs from the workload's template
	// while the workload is paused.
	running   string
	revisions revisions
	gone      gone
	// takenOver is true when another workload took over the revisions of a deleted one since the
	// last settlement. A further rollout leaves no trace of that.
	takenOver bool
	// unsettled is true from the creation of a workload until the next settlement.
	unsettled bool
	releases  releases

	// blind is true while Lockstep doesn't see writes. pauseUnseen is true when that was the
	// case during the current pause, so Lockstep can't know from which template the pods were
	// made.
	blind, pauseUnseen bool
	// settled is the model at the last settlement, and since are the facts after it: when
	// Lockstep is killed, it may have seen any part of them.
	settled *Model
	since   []Fact

	// rollouts counts Lockstep's rollouts.
	rollouts int
	others
}

// others is what happened since the last settlement besides Lockstep's rollouts: another writer made one, or
// the digest of templates changed, which looks like one.
type others struct{ rolledOut, upgraded bool }

// NewModel returns the model of a workload that Lockstep has not seen yet.
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

// SetBlind sets whether Lockstep misses writes, because it or its watches are down.
func (m *Model) SetBlind(blind bool) {
	m.blind = blind
	m.pauseUnseen = m.pauseUnseen || blind && m.workload != nil && m.workload.Paused
}

// Upgrade records that the next process digests templates in another way.
func (m *Model) Upgrade() { m.upgraded = true }

// Interrupt records that Lockstep was killed, or that its watches ended: it may not have
// recorded, or seen, the events since the last settlement. A process that continues decides
// by what it saw last.
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
	again.settled, again.blind, again.rollouts, again.upgraded = m.settled, true, m.settled.rollouts, m.upgraded
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

// replaced applies that another writer changed the template.
func (m *Model) replaced(old Workload) {
	for _, s := range m.sources {
		s.wentBack()
	}
	now := *m.workload
	used := len(m.revisions.numbers[now.Template]) > 0
	m.number(now.Template, !now.Paused)
	if !now.Paused {
		m.rolled(rollout{before: m.last(old.Template), kept: old.Older && used, goesOn: old.Beside == now.Template})
		return
	}
	m.edited()
	if m.blind { // it may have been rolled out before the pause
		m.doubt()
	}
}

// Observe applies a fact. The error names the rule that Lockstep has broken.
func (m *Model) Observe(f Fact) error {
	m.since = append(m.since, f)
	m.note(f)
	defer m.startPods()
	defer m.unnumbered()
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
		m.replaced(old)
	case old.Paused && !f.Workload.Paused && m.running != f.Workload.Template:
		before := m.last(m.running)
		m.number(f.Workload.Template, true)
		r := rollout{before: before, kept: old.Running}
		if m.blind || m.pauseUnseen {
			r.unrolled = m.last(f.Workload.Template) - 1
		}
		m.rolled(r)
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

// write applies a write of a source.
func (m *Model) write(f Fact) {
	s := m.sources[f.Source]
	s.rewritten = s.rewritten || m.rolledOut && s.content != f.Content
	s.write(f, m.blind)
	s.wentBack()
	if m.blind && (m.rolledOut || m.upgraded || m.pauseUnseen) && s.content != "" { // pods may have loaded another content that was changed back since
		s.add(belief{delivered: Unknown})
	}
}

// unnumbered: the template of a StatefulSet has no number. If nobody watches, only pods show that it wasn't another one for a
// while, and these worlds don't have any.
func (m *Model) unnumbered() {
	for _, s := range m.sources {
		if m.blind && m.revisions.stateful && s.restamped {
			s.add(belief{delivered: Unknown})
		}
	}
}

// startPods: a rollout that isn't complete may start pods at any time, and they load a change that is due.
func (m *Model) startPods() {
	for _, s := range m.sources {
		isDue := s.mayBe(belief.differs, s.content)
		s.between = s.between || isDue && m.workload != nil && m.workload.Older && !m.workload.Paused
	}
}

// note records what a template shows, and when it was new.
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
// Pods may have loaded the current content, or any earlier one.
func (m *Model) doubt() {
	for _, s := range m.sources {
		if s.mayBe(belief.differs, s.content) || s.restamped || s.touched {
			s.add(belief{delivered: Unknown})
		}
	}
}

// ask: the current contents become the baseline when Lockstep starts to follow a workload.
func (m *Model) ask() {
	for _, s := range m.sources {
		s.beliefs = []belief{{delivered: s.content}}
	}
}

// make: a workload that took over the revisions of another one continues its record. For any
// other workload, the current contents become the baseline.
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
	// Versions only grow: an undo may restore an earlier release.
	m.releases.last, m.pauseUnseen = max(m.releases.last, f.Workload.Release), f.Workload.Paused
	for name, s := range m.sources {
		s.overwritten = append(s.overwritten, s.unrecorded...) // nothing shows who wrote its template
		s.each(func(b belief) []belief {
			switch {
			case m.takenOver && m.gone.unsettled:
				// Its baseline may be the content that a broken watch saw last.
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
		if s.touched && (m.blind || m.takenOver) { // each kind is listed separately, so the order of the two changes is unknown
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

// rollout is another writer's rollout, after the revision with the number before.
type rollout struct {
	before int64
	// kept is true when it uses a revision whose pods may have been running all along, and
	// goesOn when they were: it ends a canary, whose stable pods continue.
	kept, goesOn bool
	// unrolled is the number before the last one, if Lockstep didn't see the pause that ends with the rollout: it can't
	// know that the revisions of that pause never had pods. It is zero otherwise.
	unrolled int64
}

// rolled: another writer's rollout loads the current contents, and so delivers pending
// changes. Any other content was reverted if pods are made from a revision that existed
// before and shows another version.
func (m *Model) rolled(r rollout) {
	m.rolledOut = true
	if !r.goesOn {
		m.load()
	}
	for name, s := range m.sources {
		s.each(func(b belief) []belief {
			b.gave = "" // pods of this rollout have loaded the current content
			next := m.delivered(name, m.judgements(name, b), r)
			if s.saw != "" && s.saw != s.content && s.saw != b.delivered { // only some of the watches may have ended
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

// delivered adds to the judgements of a belief that the rollout delivered the current
// content. Lockstep can't know what an unseen rollout delivered, nor whether a rollout
// delivered anything if pods of its revision may have been running all along. Pods that
// continue to run keep the content that they loaded.
func (m *Model) delivered(name string, judged []belief, r rollout) []belief {
	s := m.sources[name]
	goOn, isGiven := r.goesOn && !m.blind, judged[0].delivered == s.content || s.content == ""
	if isGiven && m.blind && (s.touched || s.restamped) && s.content != "" && (!judged[0].back || m.revisions.stateful) {
		// Each kind is listed separately: the content may have been another one at the rollout. The revisions of a
		// StatefulSet don't always show that it reverted the content.
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
	delivers := belief{delivered: s.content, from: r.before, unseen: m.blind && m.revisions.stateful}
	if s.doubted = (belief{}); r.kept {
		s.doubted = delivers
	}
	judged = append(judged, delivers)
	if r.unrolled > r.before {
		delivers.from = r.unrolled
		judged = append(judged, delivers)
	}
	return judged
}

// load: pods of the template start and load the current contents.
func (m *Model) load() {
	contents := map[string]string{}
	for name, s := range m.sources {
		contents[name] = s.content
	}
	m.revisions.loaded[m.workload.Template] = contents
}

// aborted: pods are made from the stable revision, or that has ended. That doesn't deliver
// anything. If the canary may have delivered a content, it did: its pods were not the ones
// that continued.
func (m *Model) aborted() {
	for name, s := range m.sources {
		s.each(func(b belief) []belief { return m.judgements(name, b) })
		if s.doubted.delivered != "" && s.doubted.delivered == s.content {
			s.add(m.judged(name, s.doubted))
		}
		if numbers := m.revisions.numbers[m.workload.Template]; m.workload.Stable == "" && s.content != "" && m.revisions.loaded[m.workload.Template][name] == s.content {
			s.add(belief{delivered: s.content, from: numbers[len(numbers)-1] - 1}) // its revision is younger than the content
		}
	}
}

// judgements are what Lockstep can conclude from a belief when pods are made from another
// revision: a release may take effect before or after that.
func (m *Model) judgements(name string, b belief) []belief {
	all := []belief{m.judged(name, b)}
	if m.releases.accepting || m.releases.accepted == m.workload.Template || all[0].back && (b.unseen || m.inDoubt(b.from)) {
		all = append(all, belief{delivered: b.delivered, from: b.from, late: b.late, unseen: b.unseen})
	}
	return all
}

// mistake: a rollout that Lockstep did not see, and that led back to the earlier template,
// looks as if nothing had happened. An unrecorded Lockstep patch prevents that, because its
// revision remains.
func (m *Model) mistake(name string, s *source) {
	before := m.settled
	if !m.blind || before == nil || before.workload == nil || before.workload.Template != m.workload.Template || before.rollouts < m.rollouts {
		return
	}
	for _, b := range before.sources[name].beliefs {
		s.add(b)
	}
}

// edited: a template change during a pause doesn't deliver anything. Whether it reverts
// something shows after the resume.
func (m *Model) edited() {
	for name, s := range m.sources {
		s.each(func(b belief) []belief {
			return []belief{b, m.judged(name, b), {delivered: b.delivered, from: b.from, late: b.late, unseen: b.unseen}}
		})
		m.forget(name, s)
	}
}

// forget: events that Lockstep can't see hide earlier ones, and a reused revision looks as
// if it had been made for the contents it shows.
func (m *Model) forget(name string, s *source) {
	if !m.blind {
		return
	}
	s.overwritten = append(s.overwritten, s.unrecorded...)
	if shows, does := m.workload.Shows[name]; does {
		s.overwritten = append(s.overwritten, shows)
	}
}

// judged decides whether the version on record was reverted. The revision that delivered it
// may itself be a reused one.
func (m *Model) judged(name string, b belief) belief {
	current := cmp.Or(m.workload.Stable, m.workload.Template)
	numbers := m.revisions.numbers[current]
	had := !slices.Contains(numbers, b.from+1) && slices.ContainsFunc(numbers, func(n int64) bool { return n <= b.from })
	shows, does := m.revisions.shows[current][name]
	b.back = had && (!does || shows != b.delivered)
	return b
}

// inDoubt reports whether names and times leave open that the workload had its revision
// before the rollout after the number from: the revision before that rollout is another one,
// and was not certainly made later. Times have a resolution of one second, and those of the
// revisions are a little later than those of the templates.
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

// release: a user accepts the reverted versions.
func (m *Model) release() {
	m.releases.last, m.releases.accepting, m.releases.accepted = m.workload.Release, true, m.workload.Template
	m.hold.release()
	for _, s := range m.sources {
		s.each(func(b belief) []belief {
			next := []belief{{delivered: b.delivered, from: b.from, late: b.late, unseen: b.unseen}}
			if b.delivered == Unknown && s.restamped { // a patch that is not on record showed it, and that was undone
				next = append(next, belief{delivered: s.content})
			}
			if m.workload.Paused { // an edited template is judged again after the resume
				next = append(next, b)
			}
			return next
		})
	}
}

// countRollout: Lockstep has written the template, which breaks the rules when nothing was
// due, or when something blocked the rollout.
func (m *Model) countRollout(old Workload, early bool) error {
	m.rollouts++
	err := m.forbidden(old)
	if err == nil && old.Stable != "" && old.Stable == m.workload.Template {
		err = fmt.Errorf("the controller went back to the stable template of an aborted canary, whose pods may have loaded what was between:\n%s", m)
	}
	if early {
		m.unnumber(old.Template)
	}
	// A reused ControllerRevision keeps its name and its time. Without numbers, nothing shows
	// that a revision with the same contents was not made by another writer. When the process
	// ends, and the patch is undone, it leaves no trace.
	leavesNoTrace := m.revisions.stateful && m.blind && (len(m.revisions.numbers[m.workload.Template]) > 0 || maps.Equal(old.Shows, m.workload.Shows))
	before := m.newest()
	m.number(m.workload.Template, true)
	m.load()
	for name, s := range m.sources {
		s.unshown = s.unshown && m.workload.Shows[name] != s.content
		s.restamped = s.restamped && m.blind
		if s.content == "" { // pods wait for it, and load the content that returns
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

// String is the model's state, for analysing a failure.
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
