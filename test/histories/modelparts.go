package histories

import (
	"maps"
	"slices"
	"time"
)

// revisions are those of the workload, by template, as its controller keeps them.
type revisions struct {
	// canary is true for a Rollout. stateful is true for a StatefulSet: its revisions have
	// names and the times when they were made, and no numbers that stay.
	canary, stateful bool
	made             map[string]time.Time
	// numbers are those of each template's revision: one that is used again gets a new
	// number and keeps the old ones. shows is what Lockstep wrote into each template.
	numbers map[string][]int64
	shows   map[string]map[string]string
	// loaded are the contents that pods of each template have loaded.
	loaded map[string]map[string]string
}

func (r revisions) clone() revisions {
	r.shows, r.made, r.loaded = maps.Clone(r.shows), maps.Clone(r.made), maps.Clone(r.loaded)
	all := r.numbers
	r.numbers = map[string][]int64{}
	for template, numbers := range all {
		r.numbers[template] = slices.Clone(numbers)
	}
	return r
}

// gone is how a workload went that left its revisions.
type gone struct {
	// at is when it was deleted. Whether that was more than ten minutes ago Lockstep knows
	// only if it saw it: unseen is true when it did not.
	at     time.Time
	unseen bool
	// aborted is true when its rollout was: one that is made again is rolled out as a whole.
	aborted bool
	// unsettled is true when it was gone before the first settlement, so that the record may
	// still be that of an earlier one.
	unsettled bool
}

// releases are those that a user asks for.
type releases struct {
	// last is the last release that counted; accepting is true when it was asked for
	// since the last settlement, so that it may be carried out before what was done since
	// or after it.
	last      int64
	accepting bool
	accepted  string // the template that it was about
}
