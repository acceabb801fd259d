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
	running string
	// numbers are those of each template's revision, as the workload's controller gives
	// them: a revision that is used again gets a new one and keeps the old ones. shows is
	// what Lockstep wrote into each template.
	numbers map[string][]int64
	shows   map[string]map[string]string
	// canary is true for a Rollout.
	canary bool
	// gone is when the workload was deleted and its revisions were left; takenOver is true
	// when another one took them over since the last settlement. After a further rollout
	// nothing tells that any more.
	// Whether that was more than ten minutes ago Lockstep knows only if it saw it.
	// One that is made again after an abort is rolled out as a whole.
	gone                               time.Time
	goneUnseen, goneAborted, takenOver bool
	// released is the last release that counted; accepting is true when it was asked for
	// since the last settlement, so that it may be carried out before what was done since
	// or after it.
	released  int64
	accepting bool
	accepted  string // the template that it was about

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
func NewModel(canary bool) *Model {
	m := &Model{numbers: map[string][]int64{}, shows: map[string]map[string]string{}, sources: map[string]*source{}, canary: canary}
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
// the last settlement may not be on record, or was not seen.
func (m *Model) Interrupt() error {
	if m.settled == nil {
		return nil
	}
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
	if f.Workload != nil {
		m.shows[f.Workload.Template] = f.Workload.Shows
	}
	switch {
	case f.Source != "":
		s := m.sources[f.Source]
		s.rewritten = s.rewritten || m.rolledOut && s.content != f.Content
		s.write(f, m.blind)
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
	m.pauseUnseen = m.pauseUnseen && old.Paused || m.blind && f.Workload.Paused
	if !f.Lockstep {
		m.hold.write(old, *f.Workload, len(m.numbers[f.Workload.Template]) > 0)
	}
	switch {
	case f.Lockstep:
		return m.moved(old)
	case old.Template != f.Workload.Template:
		used := len(m.numbers[f.Workload.Template]) > 0
		m.number(f.Workload.Template, !f.Workload.Paused)
		if f.Workload.Paused {
			m.edited()
		} else {
			m.rolled(m.last(old.Template), old.Older && used)
		}
	case old.Paused && !f.Workload.Paused && m.running != f.Workload.Template:
		before := m.last(m.running)
		m.number(f.Workload.Template, true)
		m.rolled(before, old.Older)
	case old.Stable != f.Workload.Stable:
		m.aborted()
	}
	if f.Workload.Release > m.released {
		m.release()
	}
	return nil
}

// make: a workload that took over the revisions of another one goes on with its record;
// of any other what exists is taken as given.
func (m *Model) make(f Fact) {
	m.workload = f.Workload
	m.hold.make()
	if m.gone.IsZero() {
		m.numbers = map[string][]int64{}
	}
	inTime, usedBefore := f.At.Sub(m.gone) < goneFor, len(m.numbers[f.Workload.Template]) > 0 || f.Workload.Paused
	m.takenOver = !m.gone.IsZero() && inTime && usedBefore
	maybe := m.goneUnseen
	m.number(f.Workload.Template, !f.Workload.Paused)
	// Versions only grow: an undo may bring back a release from before.
	m.released, m.pauseUnseen = max(m.released, f.Workload.Release), f.Workload.Paused
	for name, s := range m.sources {
		s.overwritten = append(s.overwritten, s.unrecorded...) // nothing tells who wrote its template
		s.each(func(b belief) []belief {
			switch {
			case m.takenOver && m.blind:
				return []belief{b, m.judged(name, b)}
			case m.takenOver && m.goneAborted:
				return []belief{m.judged(name, b)}
			case m.takenOver:
				return []belief{b}
			case maybe:
				return []belief{b, m.judged(name, b), {given: s.content}}
			}
			return []belief{{given: s.content}}
		})
		if len(s.beliefs) == 0 { // the first one
			s.add(belief{given: s.content})
		}
		if m.blind && s.touched { // each kind is listed by itself: which of the two came first cannot be told
			s.add(belief{given: Unknown})
		}
		s.unseen = !m.takenOver
	}
}

func (m *Model) delete(f Fact) {
	m.goneAborted = m.workload.Stable != ""
	m.workload, m.gone, m.goneUnseen = nil, time.Time{}, m.blind
	if f.Orphaned {
		m.gone = f.At
	}
}

// number gives the revision of a template its number, as the workload's controller does.
// That of Deployments makes none during a pause, but one that exists is the current one at
// once. That of Rollouts makes one, and no pods from it.
func (m *Model) number(template string, makes bool) {
	if makes {
		m.running = template
	}
	if len(m.numbers[template]) == 0 && !makes && !m.canary {
		return
	}
	next := int64(1)
	for other, numbers := range m.numbers {
		if other != template {
			next = max(next, numbers[len(numbers)-1]+1)
		}
	}
	if m.last(template) < next {
		m.numbers[template] = append(m.numbers[template], next)
	}
}

// last is the number of a template's revision, zero when there is none.
func (m *Model) last(template string) int64 {
	if numbers := m.numbers[template]; len(numbers) > 0 {
		return numbers[len(numbers)-1]
	}
	return 0
}

// rolled: another writer's rollout loads what exists, and so delivers what is due. What it
// does not deliver was taken back when pods are made from a revision that was there
// before, and that shows another version. Lockstep cannot know what a rollout delivered
// that it did not see, nor whether one delivered anything that uses a revision of which
// pods may have run all along (kept).
func (m *Model) rolled(before int64, kept bool) {
	m.rolledOut = true
	for name, s := range m.sources {
		s.each(func(b belief) []belief {
			b.gave = "" // pods of this rollout have loaded what exists
			judged := m.judgements(name, b)
			if b.given == s.content || s.content == "" {
				return judged
			}
			if !m.blind && !m.pauseUnseen && !kept {
				for i := range judged {
					judged[i].late = s.content
				}
			}
			return append(judged, belief{given: s.content, from: before})
		})
		m.forget(name, s)
		m.mistake(name, s)
		if m.takenOver {
			s.add(belief{given: s.content})
			s.unseen = s.unseen || m.blind
		}
	}
}

// aborted: pods are made from the stable revision, or no longer. That delivers nothing.
func (m *Model) aborted() {
	for name, s := range m.sources {
		s.each(func(b belief) []belief { return m.judgements(name, b) })
	}
}

// judgements are what Lockstep can make of a belief when pods are made from another
// revision: a release may be carried out before that or after it.
func (m *Model) judgements(name string, b belief) []belief {
	all := []belief{m.judged(name, b)}
	if m.accepting || m.accepted == m.workload.Template {
		all = append(all, belief{given: b.given, from: b.from, late: b.late})
	}
	return all
}

// mistake: a rollout that Lockstep did not see, and that led to the template of before,
// looks as if nothing had happened.
func (m *Model) mistake(name string, s *source) {
	before := m.settled
	if !m.blind || before == nil || before.workload == nil || before.workload.Template != m.workload.Template {
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
			return []belief{b, m.judged(name, b), {given: b.given, from: b.from, late: b.late}}
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

// judged is whether the version on record was taken back. The very revision that gave it
// may be one that was used again.
func (m *Model) judged(name string, b belief) belief {
	current := cmp.Or(m.workload.Stable, m.workload.Template)
	numbers := m.numbers[current]
	had := !slices.Contains(numbers, b.from+1) && slices.ContainsFunc(numbers, func(n int64) bool { return n <= b.from })
	shows, does := m.shows[current][name]
	b.back = had && (!does || shows != b.given)
	return b
}

// release: a person accepts what was taken back.
func (m *Model) release() {
	m.released, m.accepting, m.accepted = m.workload.Release, true, m.workload.Template
	m.hold.release()
	for _, s := range m.sources {
		s.each(func(b belief) []belief {
			next := []belief{{given: b.given, from: b.from, late: b.late}}
			if m.workload.Paused { // an edited template is judged again after the resume
				next = append(next, b)
			}
			return next
		})
	}
}

// moved: Lockstep has written the template, which is against the rules when nothing was
// due, or when something stood in the way.
func (m *Model) moved(old Workload) error {
	m.rollouts++
	err := m.forbidden(old)
	before := m.last(old.Template)
	m.number(m.workload.Template, true)
	for _, s := range m.sources {
		if s.content == "" { // pods wait for it, and load what comes back
			s.overwritten = append(s.overwritten, s.unrecorded...)
		}
		if m.blind {
			s.each(func(b belief) []belief {
				s.unrecorded = append(s.unrecorded, b.given)
				return []belief{b}
			})
		}
		s.each(func(b belief) []belief {
			if b.given != s.content && s.content != "" {
				return []belief{{given: s.content, from: before}}
			}
			next := []belief{{given: b.given, from: b.from}} // a later revision is current
			if s.touched && s.content != "" {                // it may have been given what was between, and this by the same rollout
				next = append(next, belief{given: b.given, from: before})
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
	c.shows = maps.Clone(m.shows)
	c.numbers = map[string][]int64{}
	for template, numbers := range m.numbers {
		c.numbers[template] = slices.Clone(numbers)
	}
	return &c
}

// String is what the model knows, for people who look at a failure.
func (m *Model) String() string {
	var b strings.Builder
	if m.workload != nil {
		fmt.Fprintf(&b, "  workload: held=%t paused=%t aborted=%t revisions %v\n", m.workload.Held, m.workload.Paused, m.workload.Stable != "", m.numbers[m.workload.Template])
	}
	for _, name := range []string{ConfigMap, Secret} {
		s := m.sources[name]
		fmt.Fprintf(&b, "  %s is %q, held=%t; given can be", name, s.content, s.held)
		for _, belief := range s.beliefs {
			fmt.Fprintf(&b, " [%q after revision %d, taken back: %t]", belief.given, belief.from, belief.back)
		}
		b.WriteString("\n")
	}
	return b.String()
}
