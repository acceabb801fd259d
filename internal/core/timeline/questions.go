package timeline

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// FollowedSince bounds since when the workload is followed as it is now: not before its
// kind and the input's kind were first listed, and not before the workload, its namespace
// or the input asked for it.
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

// AppearedSince reports whether the input was created since the workload was last
// checked, unless a rollout came after it. No watch needs to have seen that: the record
// lists the patterns that searched for it. An input that existed and refused to be
// followed hasn't appeared.
func (t Timeline) AppearedSince() bool {
	return t.Record.Searched && !t.Input.Asked.After(t.Input.Content) && t.Loaded() != Yes && !t.newestRevision().After(t.Input.Created)
}

// OrderUnknown reports whether it is unknown which came first, the change of the input or
// another writer's rollout: a list showed one of them. The pods have loaded the previous
// version, the current one, or one in between. When the process starts, an unchanged
// template on record shows that there was no rollout.
func (t Timeline) OrderUnknown() bool {
	template, content := t.Workload.Template, t.Input.Content
	if t.Record.TakenOver { // its pods were created before it, perhaps in the gap that hid the change
		return content.Min > 0 && !content.Exact() && !content.After(template)
	}
	if content.Max == 0 || t.Workload.Unrevised || template.After(content) || content.After(template) {
		return false
	}
	return t.mayHaveRolledOut()
}

// MayHaveDeliveredAnother reports whether a rollout that the record doesn't take into account
// may have loaded another version than the current one, even if the record lists the current one:
// the input may have changed before that rollout, and changed back since.
func (t Timeline) MayHaveDeliveredAnother() bool {
	return !t.isOnRecord() && t.MayHaveLoadedAnother()
}

// MayHaveLoadedAnother reports whether nothing shows that a rollout that the record doesn't take into
// account has loaded the current version. Our own patch for that version shows it, unless a watch saw
// that the content changed after it.
func (t Timeline) MayHaveLoadedAnother() bool {
	isOurs := t.DeliveredThis() && !t.Input.Content.After(t.Workload.Template)
	return t.RolledOutUnaccounted() && !isOurs && t.Loaded() != Yes
}

// isOnRecord reports whether the input was last written before the record was, so no rollout since
// then has loaded another version than the one on record. Times show that, and the resource versions that no write
// came later which left no time: one that removed a key, with the manager that had added it. If the watch saw the
// write, two times in the same second don't show it.
func (t Timeline) isOnRecord() bool {
	written, since := t.Input.WrittenAt, t.Record.RolledOutAt
	if t.Record.AsOf.After(since) {
		since = t.Record.AsOf
	}
	if t.IsInGap() || written.IsZero() || t.Record.Version > 0 && t.version() > t.Record.Version {
		return false
	}
	return written.Before(since) || t.IsUnwatched() && written.Equal(since)
}

// RolledOutUnaccounted reports whether another writer's rollout has begun that the record
// doesn't take into account.
func (t Timeline) RolledOutUnaccounted() bool {
	return (t.Record.Unaccounted || t.IsInGap()) && !t.Workload.Unrevised
}

// IsInGap reports whether the template was perhaps written in a gap of the input's watch, before the last write
// of the gap. Each kind is listed separately, so the record may list the template with the content from before
// the gap.
func (t Timeline) IsInGap() bool {
	missed, template := t.Input.Missed, t.Workload.Template
	return missed != Bounds{} && !template.After(missed) && !missed.After(template)
}

// MadeUnseen reports whether the workload was created while the controller was down. It
// is new to the record and came with a list, so its start is unknown. It is younger than
// Lockstep's following of its kind, and no watch saw the write of the setting that asks
// for it.
func (t Timeline) MadeUnseen() bool {
	if t.Record.Known || t.Workload.Template.Min > 0 || t.Workload.Asked.Min > 0 {
		return false
	}
	return t.Begun && t.Workload.Created.After(t.Following)
}

// ChangedAfterUnseenAsk reports whether the input was written after the workload, which is on record, asked for
// it while the controller was down. Only times show that.
func (t Timeline) ChangedAfterUnseenAsk() bool {
	asked, since := t.Workload.AskedAt, t.Record.AsOf
	if t.Record.RolledOutAt.After(since) {
		since = t.Record.RolledOutAt
	}
	isNews := t.Record.Known && !since.IsZero() && asked.After(since) && t.Workload.Asked.Min == 0
	return isNews && t.Input.WrittenAt.After(asked) && t.Loaded() != Yes
}

// ChangedAfterUnseenStart reports whether the workload was created while the controller
// was down, and the input existed when its newest revision was created, or in the same second, but was written
// afterwards, and after the workload asked to be followed. Only times show that, so in
// doubt the answer is no.
func (t Timeline) ChangedAfterUnseenStart() bool {
	revision := t.newestRevision()
	if !t.MadeUnseen() || revision.IsZero() || t.Workload.AskedAt.IsZero() {
		return false
	}
	written := t.Input.WrittenAt
	return !t.Input.Created.After(revision) && written.After(revision) && written.After(t.Workload.AskedAt)
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

// IsUnwatched reports whether no watch saw the input's last change, so revisions can show
// more about it.
func (t Timeline) IsUnwatched() bool {
	return !t.Input.Content.Exact()
}

// HasUnrecordedPatch reports whether our own patch that isn't on record wrote the
// template's mark of the input. Two patches may carry the same second; then a version
// other than the one on record shows it.
func (t Timeline) HasUnrecordedPatch() bool {
	if t.Workload.RolledOutAt.IsZero() || !t.Workload.RolledOutAt.Equal(t.Record.RolledOutAt) {
		return t.Workload.RolledOutAt.After(t.Record.RolledOutAt)
	}
	return t.Record.Shown != input.Mark{} && t.Record.Shown != t.Workload.Shows
}

// DeliveredAnother reports whether Lockstep delivered another version than the current one,
// and the process ended before that was on record.
func (t Timeline) DeliveredAnother() bool {
	return t.HasUnrecordedPatch() && t.Workload.Shows != input.Mark{} && t.Workload.Shows != t.Input.Shows
}

// IsDeliveringAnother reports whether a series of evictions has begun for another version than
// the current one, which pods may have loaded.
func (t Timeline) IsDeliveringAnother() bool {
	return t.Record.Delivering != input.Mark{} && t.Record.Delivering != t.Input.Shows
}

// DeliveredThis reports whether our own patch that isn't on record delivered the current
// version: the process ended, the API server's answer was lost, or a user ran the command line.
func (t Timeline) DeliveredThis() bool {
	return t.HasUnrecordedPatch() && t.Workload.Shows == t.Input.Shows && !t.isRewritten()
}

// isRewritten reports whether another writer's rollout came after our own patch that isn't on record, and kept its
// marks: it may have loaded another version. Only a revision shows that; a write of anything else may move the time of
// the template.
func (t Timeline) isRewritten() bool {
	if !t.Workload.Rewritten || !t.Past.Asked {
		return t.Workload.Rewritten
	}
	current := slices.IndexFunc(t.Past.Revisions, func(r Revision) bool { return r.Current })
	return current >= 0 && slices.ContainsFunc(t.Past.Revisions, func(r Revision) bool {
		return !r.Current && r.Text == t.Past.Revisions[current].Text && r.Shown.Show(t.ID, t.Input.Shows)
	})
}

// DeliveredUnrecorded reports whether Lockstep delivered the current version, and that isn't
// on record. Our last patch's marks are still in the
// template, unless another writer has changed it since; then the revisions show them.
func (t Timeline) DeliveredUnrecorded() bool {
	if t.HasUnrecordedPatch() {
		return t.DeliveredThis()
	}
	return t.Past.Asked && slices.ContainsFunc(t.Past.Revisions, t.deliveredBy)
}

// deliveredBy reports whether a revision was created for the current version, or became
// current again, after everything that the record takes into account.
func (t Timeline) deliveredBy(r Revision) bool {
	if !r.Shown.Show(t.ID, t.Input.Shows) || t.isAccounted(r) {
		return false
	}
	made := r.Created.After(t.Record.RolledOutAt) && r.Created.After(t.Record.AsOf) && !t.keeps(r)
	return made || t.usedAgain(r) && t.Workload.Shows != t.Input.Shows && t.Record.Shown != t.Input.Shows
}

// isAccounted reports whether the record takes every use of the revision into account, whatever it says about the
// version since. By its times, it may be a second younger than the patch on record that it was created for.
func (t Timeline) isAccounted(r Revision) bool {
	return r.Number > 0 && r.Number <= t.Record.Accounted
}

// keeps reports whether the revision was created from one with the same marks. Our own
// patch changes the marks, even when it delivers the same versions again, so another
// writer changed something else. If the previous revision isn't known, this one may have
// kept the marks of the template on record.
func (t Timeline) keeps(r Revision) bool {
	before := slices.Min(r.numbers()) - 1
	i := slices.IndexFunc(t.Past.Revisions, func(other Revision) bool { return slices.Contains(other.numbers(), before) })
	if before <= 0 || i < 0 {
		return t.Record.Shown == t.Input.Shows
	}
	return t.Past.Revisions[i].Text == r.Text
}

// usedAgain: the revision became current after everything on record. Content that changes
// back to an earlier version reuses that version's revision, with a new number. While the
// template still shows the version, a user may have gone back to the revision, and
// changed the content afterwards: then the pods haven't read it. Pods don't read anything
// during a pause either, even though a reused revision gets its number.
func (t Timeline) usedAgain(r Revision) bool {
	return t.Record.Accounted > 0 && r.Number > t.Record.Accounted && !t.Workload.Unrolled
}

// ShowsEarlier reports whether our patch showed one version, and another writer's
// template now shows a different one that isn't the current one either. A record that
// doesn't list its template has no better way to detect an undo (Origin.Reverted).
func (t Timeline) ShowsEarlier() bool {
	none := input.Mark{}
	return !t.Record.KnowsTemplate && !t.HasUnrecordedPatch() && t.Record.Shown != none && t.Workload.Shows != none &&
		t.Workload.Shows != t.Record.Shown && t.Workload.Shows != t.Input.Shows
}
