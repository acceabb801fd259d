package histories

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Settle compares Lockstep's state, once it has decided on everything, with the rules. The
// model stays unchanged when they do not agree.
func (m *Model) Settle(w Word) error {
	next := m.clone()
	if m.workload != nil && !m.workload.Left {
		if err := next.agree(w); err != nil {
			return err
		}
	}
	for _, s := range next.sources {
		s.touched, s.unshown, s.arrived, s.saw = false, false, false, ""
		s.between = s.between && (s.mayBe(belief.differs, s.content) || s.mayBe(belief.isReverted, s.content))
		s.rewritten = s.rewritten && m.workload == nil // its record is compared when the workload is back
	}
	if next.releases.accepting && next.workload != nil { // it has taken effect by now
		next.releases.accepted = next.workload.Template
	}
	next.releases.accepting, next.takenOver, next.others = false, false, others{}
	next.unsettled = next.unsettled && next.workload == nil
	next.settled = next.clone()
	next.settled.settled = nil
	*m = *next
	return nil
}

// agree keeps the beliefs that agree with Lockstep's state; an error means that none does.
func (m *Model) agree(w Word) error {
	for _, name := range []string{ConfigMap, Secret} {
		s := m.sources[name]
		if s.content == "" { // its delivered version shows when it is back
			continue
		}
		before := m.String()
		s.learn(w.Delivered[name], w.Back[name], m.workload.Shows[name])
		if len(s.beliefs) == 0 {
			return fmt.Errorf("%s is on record as %q, reverted: %t; the rules say\n%s", name, w.Delivered[name], w.Back[name], before)
		}
		s.unseen = false
	}
	if err := m.checkReason(w.Reason); err != nil {
		return err
	}
	return m.hold.settle(*m.workload, w.Kept)
}

// checkReason: pending changes are rolled out by now, unless something blocks the rollout.
func (m *Model) checkReason(reason string) error {
	may := map[string]bool{}
	must := false
	for _, s := range m.sources {
		must = must || s.mustBe(belief.differs, s.content)
		may[reasonMissing] = may[reasonMissing] || s.content == ""
		if s.held && (s.mayBe(belief.differs, s.content) || len(s.unrecorded) > 0) {
			may[reasonHeld] = true
		}
		if s.mayBe(belief.isReverted, s.content) {
			may[reasonUndone] = true
			must = must || s.mustBe(belief.isReverted, s.content)
		}
	}
	if m.workload.Paused {
		may[reasonPaused] = true
	}
	if m.workload.Held || m.hold.may {
		may[reasonHeld] = true
	}
	waits := slices.Contains([]string{reasonHeld, reasonUndone, reasonPaused, reasonMissing, "QuietWindow", "GenerationNotObserved"}, reason)
	switch {
	case waits && !may[reason]:
		return fmt.Errorf("the controller waits for %s; the rules know only %v:\n%s", reason, slices.Sorted(maps.Keys(may)), m)
	case must && !waits:
		return fmt.Errorf("something is due or was reverted, and Lockstep says %s; the rules know %v:\n%s", reason, slices.Sorted(maps.Keys(may)), m)
	}
	return nil
}

// forbidden returns why Lockstep must not have rolled out the workload. A write to a source
// since the last settlement may have come after its decision.
func (m *Model) forbidden(old Workload) error {
	if m.workload.Left {
		return errors.New("the controller rolled out a workload that does not ask for it")
	}
	if old.Held || old.Paused {
		return fmt.Errorf("the controller rolled out a workload that was held=%t, paused=%t", old.Held, old.Paused)
	}
	if m.hold.must {
		return fmt.Errorf("the controller rolled out a workload whose hold lost its annotation by an undo:\n%s", m)
	}
	due := false
	for _, name := range []string{ConfigMap, Secret} {
		s := m.sources[name]
		due = due || s.touched || len(s.unrecorded) > 0 || s.mayBe(belief.differs, s.content)
		if m.releases.accepting {
			continue
		}
		if !s.unshown && s.mustBe(belief.isReverted, s.content) {
			return fmt.Errorf("the controller rolled out %s again, which was reverted", name)
		}
		if s.touched {
			continue
		}
		if s.content == "" {
			return fmt.Errorf("the controller rolled out a workload whose pods cannot start without %s", name)
		}
		if s.held && s.mustBe(belief.differs, s.content) && !slices.Contains(s.overwritten, s.content) {
			return fmt.Errorf("the controller rolled out %s, which is held", name)
		}
	}
	if !due {
		return fmt.Errorf("the controller rolled out a workload for which nothing was due:\n%s", m)
	}
	return nil
}
