package histories

import "slices"

// source is one ConfigMap or Secret.
type source struct {
	content string
	held    bool
	// touched is true when it was written since the last settlement, rewritten when that was
	// after a rollout: Lockstep may not have seen the content that the rollout's pods loaded.
	// arrived is true when it was missing and pods waited for it.
	touched, rewritten, arrived bool
	// restamped is true when it was written with the delivered content, for example by a hold, since Lockstep's last
	// rollout: its time is younger than the record. Of a later rollout that Lockstep doesn't see, only pods show that they
	// loaded this content, and most worlds don't have any.
	restamped bool
	// between is true when pods may have started while a change was due, which isn't on record.
	between bool
	// unshown is true when it was written since the last settlement, and no later Lockstep patch
	// shows that content: Lockstep may have decided before the write.
	unshown bool
	// saw is the content that a process last saw before its watches ended, empty otherwise.
	saw string
	// unseen is true for a source that was first seen while Lockstep could not see its changes.
	unseen bool
	// doubted is the content that another writer's last rollout delivered, if pods of its
	// revision may have been running all along.
	doubted belief
	// beliefs are the versions that Lockstep can have on record.
	beliefs []belief
	// unrecorded are versions that can still be on record although a Lockstep rollout delivered
	// another one, because Lockstep was killed then. overwritten are versions that Lockstep may
	// treat as delivered because it did not see how other writers changed the template.
	unrecorded, overwritten []string
}

// belief is one possible record of a source.
type belief struct {
	delivered string
	// from is the number of the revision before the rollout that delivered the version, zero
	// when no rollout did.
	from int64
	back bool
	// unseen is true when Lockstep missed the rollout that delivered it, and nothing shows what came
	// before: the revisions of a StatefulSet have no numbers.
	unseen bool
	// late is the version that a rollout has delivered since, when Lockstep may not have checked
	// before the next change; empty otherwise.
	late string
	// guessed is true for the content that Lockstep saw last before a rollout, when the content
	// had changed by then. It is not on record at a settlement unless the rollout was reverted in
	// the meantime.
	guessed bool
	// gave is the content that Lockstep's patch delivered when the record says Unknown: the
	// process ended before it recorded the patch, and the content was changed back. If the
	// content returns, the template shows that it was delivered.
	gave string
}

// differs reports whether the content is due: no rollout has delivered it.
func (b belief) differs(content string) bool {
	return content != "" && b.delivered != content && b.late != content
}

// isReverted reports whether the content was reverted.
func (b belief) isReverted(content string) bool {
	return b.back && b.delivered == content
}

// canStay reports whether Lockstep can have kept the belief until a settlement, at which it
// is on record as reverted or not. A reverted content stays reverted when it returns after
// another change, whatever pods loaded in the meantime.
func (b belief) canStay(content string, back bool) bool {
	seen := b.late == "" || b.late != content && b.delivered != content || back && b.isReverted(content)
	return seen && (back || !b.guessed)
}

// isBack reports whether the content is again the one that Lockstep's patch delivered.
func (b belief) isBack(content string) bool {
	return b.gave != "" && b.gave == content
}

// recorded is the belief once given is on record. shows is the content that the template
// shows.
func (b belief) recorded(given, shows string) belief {
	switch given {
	case Unknown:
		if b.delivered == shows {
			b.gave = shows
		}
		b.delivered = Unknown
	case b.gave:
		b.delivered, b.gave = given, ""
	default:
		b.gave = ""
	}
	return b
}

func (s *source) mayBe(is func(belief, string) bool, content string) bool {
	return slices.ContainsFunc(s.beliefs, func(b belief) bool { return is(b, content) })
}

func (s *source) mustBe(is func(belief, string) bool, content string) bool {
	return len(s.beliefs) > 0 && !slices.ContainsFunc(s.beliefs, func(b belief) bool { return !is(b, content) })
}

// write changes the content, but not the delivered version.
func (s *source) write(f Fact, blind bool) {
	if s.content != f.Content || s.held != f.Held {
		s.touched, s.unshown = true, true
	}
	s.restamped = s.restamped || slices.ContainsFunc(s.beliefs, func(b belief) bool { return b.delivered == f.Content })
	s.content, s.held = f.Content, f.Held
	if f.Content == "" {
		if blind && s.unseen { // it is missing when first seen, and its pods may still wait for it
			s.add(belief{})
			s.add(belief{delivered: Unknown})
		}
		return
	}
	if s.arrived { // Lockstep may not have checked in between
		s.add(belief{delivered: f.Content})
	}
	s.each(func(b belief) []belief {
		if b.delivered == "" { // it is required, so no pod can have started before
			s.arrived = true
			if blind { // nothing may show that the pods didn't start with another content
				return []belief{{delivered: f.Content}, {delivered: Unknown}}
			}
			return []belief{{delivered: f.Content}}
		}
		return []belief{b}
	})
	if blind && s.unseen { // at most the API server's timestamps show whether it changed
		s.add(belief{delivered: f.Content})
		s.add(belief{delivered: Unknown})
	}
}

// wentBack: should the content be the delivered one again, Lockstep doesn't know whether pods have loaded another one
// that was due while they started. A revert hides that until there is another template.
func (s *source) wentBack() {
	if s.between && !s.mustBe(belief.differs, s.content) {
		s.add(belief{delivered: Unknown})
	}
}

// patched lists the possible records after a Lockstep patch that shows a content of the
// source. Pods load the current content, which Lockstep may not see before the next rollout.
// Until it does, or if the source is gone, the record has the content that the template
// shows.
func (s *source) patched(b belief, shows string, before int64) []belief {
	same := belief{delivered: b.delivered, from: b.from} // a later revision is current
	shown := belief{delivered: shows, from: before, guessed: s.content != ""}
	if shows == "" || shows == b.delivered {
		shown = belief{delivered: b.delivered, from: b.from, guessed: s.content != ""}
	}
	switch {
	case s.content == "":
		return []belief{same, shown}
	case b.delivered == s.content && s.touched: // another content may have been delivered in between, and this one again by this rollout
		return []belief{same, {delivered: b.delivered, from: before}}
	case b.delivered == s.content:
		return []belief{same}
	case shows != s.content:
		return []belief{shown, {delivered: s.content, from: before}}
	}
	return []belief{{delivered: s.content, from: before}}
}

// each replaces every belief with those that can follow from it.
func (s *source) each(follow func(belief) []belief) {
	before := s.beliefs
	s.beliefs = nil
	for _, b := range before {
		for _, next := range follow(b) {
			s.add(next)
		}
	}
}

func (s *source) add(b belief) {
	if !slices.Contains(s.beliefs, b) {
		s.beliefs = append(s.beliefs, b)
	}
}

// learn keeps the beliefs that agree with the record. shows is the content that the template
// shows.
func (s *source) learn(given string, back bool, shows string) {
	if given == s.content && slices.Contains(s.overwritten, given) {
		s.add(belief{delivered: given, back: back})
	}
	if s.rewritten { // pods may have loaded another content since
		shows = ""
	}
	waits := given != s.content || s.mustBe(belief.differs, s.content)
	known := func(b belief) bool {
		return given == b.delivered || b.isBack(s.content) && given == b.gave || given == Unknown && (s.rewritten || s.arrived || b.differs(s.content)) || waits && slices.Contains(s.unrecorded, given)
	}
	s.each(func(b belief) []belief {
		settled := b.back == back || b.delivered != s.content && !back || len(s.overwritten) > 0
		if !b.canStay(s.content, back) || !known(b) || !settled {
			return nil
		}
		b.back, b.late, b.guessed = back, "", false
		return []belief{b.recorded(given, shows)}
	})
	if slices.ContainsFunc(s.beliefs, func(b belief) bool { return b.delivered == given }) {
		s.unrecorded, s.overwritten = nil, nil
	}
}
