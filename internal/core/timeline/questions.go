package timeline

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// FollowedSince bounds since when the workload is followed as it is now: not before
// its kind and that of the input are followed at all, which is when they were listed,
// and not before the workload, its namespace or the input asked.
func (t Timeline) FollowedSince() Bounds {
	since := t.Workload.Asked
	if !t.Begun || !t.Workload.Created.After(t.Following) {
		since = since.Later(t.Workload.Listed)
	}
	return since.Later(t.Input.Asked)
}

// ChangedSinceFollowed reports whether the input certainly changed after the workload took up its
// template and began to be followed.
func (t Timeline) ChangedSinceFollowed() bool {
	return t.Input.Content.After(t.Workload.Template.Later(t.FollowedSince()))
}

// AppearedSince reports whether the input has come into being since the workload was last
// looked at, unless a rollout came after it. No watch needs to have seen that: the record
// says that a pattern looked for it. One that was there, and refused to be followed, has
// not appeared.
func (t Timeline) AppearedSince() bool {
	return t.Record.Searched && !t.Input.Asked.After(t.Input.Content) && !t.RolledOutSince() && !t.newestRevision().After(t.Input.Created)
}

// ChangedSinceMade reports whether the input had another content before this one, so that
// pods which waited for it may have loaded that. Of one that was first seen as it is now,
// only times tell.
func (t Timeline) ChangedSinceMade() bool {
	if t.Input.Content.Min == 0 {
		return t.Input.WrittenAt.After(t.Input.Created)
	}
	return !t.Input.New
}

// RolledOutSince reports whether the template was certainly written after the input, and
// led to a revision or will, so that the pods of that rollout read what exists.
func (t Timeline) RolledOutSince() bool {
	return t.Workload.Template.After(t.Input.Content) && !t.Workload.Unrevised && !t.keptPods()
}

// keptPods: new pods are made from a revision that is older than the content, and pods of
// it may have run all along: the rollout of another one was stuck, and undone. When the
// content was undone with it, they have that.
func (t Timeline) keptPods() bool {
	return t.Workload.OlderPods && slices.ContainsFunc(t.Past.Revisions, func(r Revision) bool {
		undone := t.Record.Was != "" && t.Record.Was == t.Input.Version && t.Record.From.Is(r)
		return r.Current && r.Created.Before(t.Input.WrittenAt) && !undone
	})
}

// OrderUnknown reports whether it is unknown which came first, the change of the input or
// another writer's rollout: a list showed one of them. The pods have loaded what was there
// before, what exists, or something between. When the process starts, a template that is on
// record tells that there was no rollout.
func (t Timeline) OrderUnknown() bool {
	template, content := t.Workload.Template, t.Input.Content
	if t.Record.TakenOver { // its pods were made before it, perhaps in the gap that hid the change
		return content.Min > 0 && !content.Exact() && !content.After(template)
	}
	if content.Max == 0 || t.Workload.Unrevised || template.After(content) || content.After(template) {
		return false
	}
	return t.Record.Unaccounted || template.Min > 0 || content.Min > 0
}

// MayHaveDeliveredAnother reports whether the input changed after a rollout that the record does
// not take into account. It may have changed before it too, and gone back: the pods of that
// rollout have loaded what was between.
func (t Timeline) MayHaveDeliveredAnother() bool {
	return t.RolledOutUnaccounted() && (t.Input.Content.After(t.Workload.Template) || t.wroteAfterUnseen())
}

// wroteAfterUnseen: the controller was down during a rollout and during a later write of the
// input, so only times tell. The write may have been to labels: Lockstep rolls out once for
// nothing rather than miss a change.
func (t Timeline) wroteAfterUnseen() bool {
	unseen := t.Workload.Template.Min == 0 && t.Input.Content.Min == 0
	return unseen && !t.HasUnrecordedPatch() && t.Input.WrittenAt.After(t.Workload.TemplateAt) && t.Input.WrittenAt.After(t.Record.RolledOutAt) && t.Input.WrittenAt.After(t.Record.AsOf)
}

// RolledOutUnaccounted reports whether another writer's rollout has begun that the record
// does not take into account.
func (t Timeline) RolledOutUnaccounted() bool {
	return t.Record.Unaccounted && !t.Workload.Unrevised
}

// MadeUnseen reports whether the workload was made while the controller was down. It is new to the
// record and came with a list, so its beginning is unknown. It is younger than the
// following of its kind, and no watch saw what asks for it being written.
func (t Timeline) MadeUnseen() bool {
	if t.Record.Known || t.Workload.Template.Min > 0 || t.Workload.Asked.Min > 0 {
		return false
	}
	return t.Begun && t.Workload.Created.After(t.Following)
}

// ChangedAfterUnseenStart reports whether the workload was made while the controller was down; the
// input existed when its newest revision was made, and was written afterwards, and
// after the workload was asked for. Only times tell, so in doubt the answer is no.
func (t Timeline) ChangedAfterUnseenStart() bool {
	revision := t.newestRevision()
	if !t.MadeUnseen() || revision.IsZero() || t.Workload.AskedAt.IsZero() {
		return false
	}
	written := t.Input.WrittenAt
	return t.Input.Created.Before(revision) && written.After(revision) && written.After(t.Workload.AskedAt)
}

func (t Timeline) newestRevision() time.Time {
	var newest time.Time
	for _, r := range t.Past.Revisions {
		if r.Created.After(newest) {
			newest = r.Created
		}
	}
	return newest
}

// IsUnwatched reports whether no watch saw the input's last change, so that revisions can tell more
// of it than is known.
func (t Timeline) IsUnwatched() bool {
	return !t.Input.Content.Exact()
}

// HasUnrecordedPatch reports whether a patch of ours that is not on record wrote what the template
// shows of the input. Two patches may bear the same second; then another version than
// the one on record tells.
func (t Timeline) HasUnrecordedPatch() bool {
	if t.Workload.RolledOutAt.IsZero() || !t.Workload.RolledOutAt.Equal(t.Record.RolledOutAt) {
		return t.Workload.RolledOutAt.After(t.Record.RolledOutAt)
	}
	return t.Record.Shown != input.Mark{} && t.Record.Shown != t.Workload.Shows
}

// GaveAnother reports whether we gave the workload another version than exists, and the process ended
// before that was on record.
func (t Timeline) GaveAnother() bool {
	return t.HasUnrecordedPatch() && t.Workload.Shows != input.Mark{} && t.Workload.Shows != t.Input.Shows
}

// IsGivingAnother reports whether a series of evictions has begun for another version than
// exists, so that pods may have loaded that.
func (t Timeline) IsGivingAnother() bool {
	return t.Record.Giving != input.Mark{} && t.Record.Giving != t.Input.Shows
}

// GaveThis reports whether a patch of ours that is not on record gave the workload what
// exists: the process ended, or a person used the command line.
func (t Timeline) GaveThis() bool {
	return t.HasUnrecordedPatch() && t.Workload.Shows == t.Input.Shows
}

// DeliveredUnrecorded reports whether we gave the workload what exists, and the process ended before
// that was on record. What our last patch wrote is still in the template, unless
// another writer has changed it since; then the revisions tell.
func (t Timeline) DeliveredUnrecorded() bool {
	if !t.Past.Asked {
		return false
	}
	if t.HasUnrecordedPatch() {
		return t.GaveThis()
	}
	return slices.ContainsFunc(t.Past.Revisions, t.deliveredBy)
}

// deliveredBy reports whether a revision was made for what exists, or became the
// current one again, after all that the record takes into account.
func (t Timeline) deliveredBy(r Revision) bool {
	if r.Shown[t.ID] != t.Input.Shows {
		return false
	}
	made := r.Created.After(t.Record.RolledOutAt) && r.Created.After(t.Record.AsOf) && !t.keeps(r)
	return made || t.usedAgain(r) && t.Workload.Shows != t.Input.Shows && t.Record.Shown != t.Input.Shows
}

// keeps reports whether the revision was made from one in which the same was written. A
// patch of ours changes that, also when it gives the same versions again: another writer
// changed something else. Where the one before is not known, it may have kept what the
// template on record shows.
func (t Timeline) keeps(r Revision) bool {
	before := slices.Min(r.numbers()) - 1
	i := slices.IndexFunc(t.Past.Revisions, func(other Revision) bool { return slices.Contains(other.numbers(), before) })
	if before <= 0 || i < 0 {
		return t.Record.Shown == t.Input.Shows
	}
	return t.Past.Revisions[i].Text == r.Text
}

// usedAgain: the revision has become the current one after all that is on record. Content that goes back to an earlier version finds that
// one's revision again, with a new number. (While the template still shows it, a
// person may have gone back to it, and the content after them: then the pods have not
// read it. Nor do they read anything while a pause lasts, in which a revision that is
// used again gets its number all the same.)
func (t Timeline) usedAgain(r Revision) bool {
	return t.Record.Accounted > 0 && r.Number > t.Record.Accounted && !t.Workload.Unrolled
}

// ShowsEarlier reports whether our patch showed one version, and another writer's template now shows
// one that is not the current one either. A record that does not say which template it
// takes into account has nothing better to tell an undo by (Origin.Reverted).
func (t Timeline) ShowsEarlier() bool {
	none := input.Mark{}
	return !t.Record.KnowsTemplate && !t.HasUnrecordedPatch() && t.Record.Shown != none && t.Workload.Shows != none &&
		t.Workload.Shows != t.Record.Shown && t.Workload.Shows != t.Input.Shows
}
