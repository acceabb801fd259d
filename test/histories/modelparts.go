package histories

import (
	"maps"
	"slices"
	"time"
)

// revisions are the workload's revisions, by template, as its controller keeps them.
type revisions struct {
	// canary is true for a Rollout. stateful is true for a StatefulSet: its revisions have names
	// and creation times, but no permanent numbers.
	canary, stateful bool
	made             map[string]time.Time
	// numbers are the numbers of each template's revision: a reused revision gets a new number
	// and keeps the old ones. shows are the contents that Lockstep wrote into each template.
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

// gone describes the deletion of a workload that left its revisions.
type gone struct {
	// at is when it was deleted. Lockstep knows whether that was more than ten minutes ago only
	// if it saw the deletion: unseen is true when it did not.
	at     time.Time
	unseen bool
	// aborted is true when its rollout was aborted: a recreated Rollout is rolled out
	// completely.
	aborted bool
	// unsettled is true when it was deleted before the first settlement, so the record may still
	// be that of an earlier workload.
	unsettled bool
}

// releases are the user's releases.
type releases struct {
	// last is the last release that counted; accepting is true when it was requested since the
	// last settlement, so it may take effect before or after the other events since then.
	last      int64
	accepting bool
	accepted  string // the template that it applied to
}
