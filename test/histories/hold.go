package histories

import "errors"

// hold tracks whether a hold on the workload counts without its annotation. An undo removes
// the annotation but not the hold. A user who removes the annotation ends the hold. If both
// happen at once, Lockstep only sees the result.
type hold struct {
	// may is true when the hold can count without its annotation, must when it does. kept is
	// true when it did at the last settlement.
	may, must, kept bool
	// seen is true while a workload with a hold is unchanged since the last settlement.
	seen bool
	// was is true when there was a hold at the last settlement or since; back when the workload
	// has returned to an earlier revision since.
	was, back bool
	// released is true when the hold could count before a release, which Lockstep may not see.
	released bool
}

// write: another writer changed the workload; used is true when the template had a revision.
func (h *hold) write(old, now Workload, used bool) {
	changed := old.Template != now.Template
	h.was = h.was || old.Held || now.Held
	h.back = h.back || changed && used
	if changed || old.Held != now.Held || old.Release != now.Release {
		undone := changed && used && old.Held && !now.Held
		h.kept = h.kept && !now.Held && old.Release == now.Release
		h.must = h.kept || h.seen && undone
		h.seen = false
		h.may = h.may || h.released || h.was && h.back
	}
}

// release: a user ends the hold.
func (h *hold) release() {
	*h = hold{was: h.was, released: h.may}
}

// make: another workload may take over the record.
func (h *hold) make() {
	*h = hold{was: h.was, back: h.back, may: h.may || h.released || h.was}
}

// settle compares the hold with the record.
func (h *hold) settle(w Workload, kept bool) error {
	switch {
	case kept && !h.may:
		return errors.New("a hold without an annotation is on record, and no undo removed it")
	case !kept && h.must:
		return errors.New("an undo removed the annotation of a hold, which is not on record any more")
	}
	*h = hold{may: kept, must: kept, kept: kept, seen: w.Held, was: w.Held}
	return nil
}
