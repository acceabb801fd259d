package histories

import "slices"

// source is one ConfigMap or Secret.
type source struct {
	content string
	held    bool
	// touched is true when it was written since the last settlement, rewritten when that was
	// after a rollout: Lockstep may not have seen what the pods of that have loaded.
	// arrived is true when pods have waited for it until then.
	touched, rewritten, arrived bool
	// unshown is true when it was written since then, and no patch of Lockstep has shown that
	// since: Lockstep may have decided before the write. What a patch has shown it knows.
	unshown bool
	// saw is the content that a process saw last whose watches have ended, empty otherwise.
	saw string
	// unseen is true for what was first seen while Lockstep could not see its changes.
	unseen bool
	// doubted is what the last rollout of another writer delivered, if pods of its revision may
	// have run all along.
	doubted belief
	// beliefs are what Lockstep can have on record.
	beliefs []belief
	// unrecorded are versions that can still be on record although a rollout of Lockstep
	// gave another one: it was killed then. overwritten are versions that Lockstep may take
	// for given because it did not see what other writers did to the template.
	unrecorded, overwritten []string
}

// belief is what Lockstep can have on record of one source.
type belief struct {
	delivered string
	// from is the number of the revision before the rollout that gave it, zero when no
	// rollout did.
	from int64
	back bool
	// late is the version that a rollout has given since, when Lockstep may not have looked
	// before the next change; empty otherwise.
	late string
	// guessed is true for the content that Lockstep saw last when there was a rollout, and that
	// was another one by then. It is not on record at a settlement unless the rollout was reverted
	// meanwhile.
	guessed bool
	// gave is what Lockstep's patch gave when the record says Unknown: the process ended before
	// the patch was on record, and the content went back. Should that content return, the
	// template tells that pods were given it.
	gave string
}

// differs reports whether the content is due: no rollout has given it.
func (b belief) differs(content string) bool {
	return content != "" && b.delivered != content && b.late != content
}

// isReverted reports whether the content was reverted.
func (b belief) isReverted(content string) bool {
	return b.back && b.delivered == content
}

// canStay reports whether Lockstep can have kept it until a settlement, at which it is on
// record as reverted or not. What was reverted stays so after a detour, whatever was
// loaded meanwhile.
func (b belief) canStay(content string, back bool) bool {
	seen := b.late == "" || b.late != content && b.delivered != content || back && b.isReverted(content)
	return seen && (back || !b.guessed)
}

// isBack reports whether the content is again what Lockstep's patch gave.
func (b belief) isBack(content string) bool {
	return b.gave != "" && b.gave == content
}

// recorded is the belief when that is on record, and the template shows what a patch gave.
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

// write: the content changes, and what was given does not.
func (s *source) write(f Fact, blind bool) {
	if s.content != f.Content || s.held != f.Held {
		s.touched, s.unshown = true, true
	}
	s.content, s.held = f.Content, f.Held
	if f.Content == "" {
		if blind && s.unseen { // it is missing at first sight, and its pods may still wait for it
			s.add(belief{})
			s.add(belief{delivered: Unknown})
		}
		return
	}
	if s.arrived { // Lockstep may not have looked in between
		s.add(belief{delivered: f.Content})
	}
	s.each(func(b belief) []belief {
		if b.delivered == "" { // required, so that no pod can have started before
			s.arrived = true
			return []belief{{delivered: f.Content}}
		}
		return []belief{b}
	})
	if blind && s.unseen { // the API server's times, if anything, tell whether it changed
		s.add(belief{delivered: f.Content})
		s.add(belief{delivered: Unknown})
	}
}

// patched is what can be on record after a patch of Lockstep that shows a content of the
// source. Pods load what exists, which Lockstep may see later than the next rollout. Until
// then, or if the source is gone, it is what the template shows.
func (s *source) patched(b belief, shows string, before int64) []belief {
	same := belief{delivered: b.delivered, from: b.from} // a later revision is current
	shown := belief{delivered: shows, from: before, guessed: s.content != ""}
	if shows == "" || shows == b.delivered {
		shown = belief{delivered: b.delivered, from: b.from, guessed: s.content != ""}
	}
	switch {
	case s.content == "":
		return []belief{same, shown}
	case b.delivered == s.content && s.touched: // it may have been given what was between, and this by the same rollout
		return []belief{same, {delivered: b.delivered, from: before}}
	case b.delivered == s.content:
		return []belief{same}
	case shows != s.content:
		return []belief{shown, {delivered: s.content, from: before}}
	}
	return []belief{{delivered: s.content, from: before}}
}

// each replaces every belief by those that can follow from it.
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

// learn keeps the beliefs that agree with the record. The template shows what a patch gave.
func (s *source) learn(given string, back bool, shows string) {
	if given == s.content && slices.Contains(s.overwritten, given) {
		s.add(belief{delivered: given, back: back})
	}
	if s.rewritten { // pods may have loaded something else since
		shows = ""
	}
	waits := given != s.content || s.mustBe(belief.differs, s.content)
	known := func(b belief) bool {
		return given == b.delivered || b.isBack(s.content) && given == b.gave || given == Unknown && (s.rewritten || b.differs(s.content)) || waits && slices.Contains(s.unrecorded, given)
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
