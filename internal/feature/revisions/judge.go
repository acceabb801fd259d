package revisions

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Verdict reports whether an object can be attached to a workload's revisions now.
type Verdict struct {
	// Reason is Attached when it can be, otherwise what is missing.
	Reason input.Reason
	// Owners are the revisions that become owners; none while something is missing.
	Owners []*lineage.Holder
	// Message explains the same to users.
	Message string
}

// Judge decides on one object of a workload. The owners are all living revisions
// that name the object: it may be older than the newest one.
func Judge(h lineage.History, object input.ID) Verdict {
	switch {
	case !h.Observed:
		return Verdict{Reason: input.GenerationNotObserved, Message: fmt.Sprintf(
			"the controller of %s has not acted on its newest version%s", h.Workload, hint(h))}
	case h.Current == nil:
		return Verdict{Reason: input.RevisionMissing, Message: fmt.Sprintf(
			"the newest version of %s does not have a revision yet%s", h.Workload, hint(h))}
	case !h.Current.UsesSource(object):
		return Verdict{Reason: input.NotReferenced, Message: fmt.Sprintf(
			"the pod template of %s, the newest revision of %s, does not reference %s", h.Current, h.Workload, object)}
	}
	return Verdict{Reason: input.Attached, Owners: users(h.Holders, object)}
}

// judgeLeniently decides like [Judge], but attaches an object that the newest revision's
// template doesn't name to that revision anyway: admission may add it to the pods, or the
// program may read it through the API.
func judgeLeniently(h lineage.History, object input.ID) Verdict {
	v := Judge(h, object)
	if v.Reason == input.NotReferenced {
		v.Owners = append(users(h.Holders, object), h.Current)
		v.Message += "; attached anyway"
	}
	return v
}

func users(holders []*lineage.Holder, object input.ID) []*lineage.Holder {
	var found []*lineage.Holder
	for _, h := range holders {
		if h.UsesSource(object) {
			found = append(found, h)
		}
	}
	return found
}

// hint explains why the workload's controller may not act. It doesn't quote the workload.
func hint(h lineage.History) string {
	switch {
	case h.Invalid:
		return " (it is invalid: see its condition InvalidSpec)"
	case h.Paused:
		return " (it is paused)"
	}
	return ""
}
