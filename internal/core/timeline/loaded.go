package timeline

import "slices"

// Answer is what is known about a question.
type Answer int

const (
	// No means that it isn't so, or nothing can show that it is.
	No Answer = iota
	// Yes means that it certainly is so.
	Yes
	// Unknown means that evidence that wasn't queried yet may show it.
	Unknown
)

// Loaded reports whether pods of the current template started after the current content was
// written, and so loaded it. Every path that records a version as delivered without a rollout of
// our own asks this question, and takes nothing but Yes as proof.
//
// Resource versions order the two writes if a watch saw one of them. A content that was written
// first is loaded by all pods of the template, unless some of them may be older than the template. If
// both writes came with lists, the rollout's revision and its pods show the order. Pods that waited for the
// input start without another rollout.
func (t Timeline) Loaded() Answer {
	template, content := t.Workload.Template, t.Input.Content
	inherited := t.Workload.Unrevised && t.Record.TakenOver
	switch {
	case t.Workload.Unrevised && !inherited:
		return No
	case template.After(content) && !inherited && !t.Workload.OlderPods:
		return Yes
	case content.After(template) && !t.Record.Waits, !t.mayHaveStarted(), inherited && !t.Record.Unaccounted, t.Workload.Unrolled:
		return No
	case !t.Past.Asked:
		return Unknown
	case !t.Record.TakenOver && template.After(content) && (t.isOfNewRevision() || t.isUndoneTogether()):
		return Yes
	case t.DeliveredAnother() && !t.isRewritten():
		return No // our own patch was decided on other content, so the time of a write that may be later isn't known
	case !t.Past.Starts.Asked:
		return Unknown
	case t.isOlderThanRevision(), t.Past.Starts.After(t.Input.WrittenAt, t.version(), t.Input.Mounted):
		return Yes
	}
	return No
}

// StartedSinceArrival reports whether a source that the watch saw appear has loaded by every pod that waited for it:
// none has started before it was created. A source of the same name may have been deleted before that.
func (t Timeline) StartedSinceArrival() bool {
	return t.Input.New && t.Past.Starts.SinceArrival(t.Input.Created)
}

// mayHaveStarted reports whether pods can have started that the record doesn't take into account: with another
// writer's rollout that no watch saw, or because what they waited for exists. When the process starts, an
// unchanged template on record shows that there was no rollout.
func (t Timeline) mayHaveStarted() bool {
	return t.Record.Waits || t.mayHaveRolledOut()
}

func (t Timeline) mayHaveRolledOut() bool {
	return t.Record.Unaccounted || t.Workload.Template.Min > 0 || t.Input.Content.Min > 0
}

// isOlderThanRevision reports whether the content was last written before the current revision was
// created. A write of the content that only removes a key leaves no time, so the last writes of the revision
// and of its pods have to be later ones, too.
func (t Timeline) isOlderThanRevision() bool {
	return !t.Input.WrittenAt.IsZero() && t.Past.Starts.MayBeAfter(t.version()) && slices.ContainsFunc(t.Past.Revisions, func(r Revision) bool {
		return r.Current && r.Created.After(t.Input.WrittenAt) && r.Written > t.version()
	})
}

// isOfNewRevision reports whether the current revision is new with its template: it has a single number,
// and was created and written later. A template that was replaced and restored before its controller acted keeps
// the earlier one.
func (t Timeline) isOfNewRevision() bool {
	return slices.ContainsFunc(t.Past.Revisions, func(r Revision) bool {
		return r.Current && r.Number > 0 && len(r.Earlier) == 0 && r.Written > t.Workload.Template.Max && !r.Created.Before(t.Workload.TemplateAt)
	})
}

// isUndoneTogether reports whether the content was undone together with the rollout that had loaded it:
// the pods that went on all along run what exists now.
func (t Timeline) isUndoneTogether() bool {
	return t.Record.Was != "" && t.Record.Was == t.Input.Version &&
		slices.ContainsFunc(t.Past.Revisions, func(r Revision) bool { return r.Current && t.Record.From.Is(r) })
}

// version is the resource version of the last write that may have changed the content. The content
// of an immutable object doesn't change, whatever else is written.
func (t Timeline) version() uint64 {
	if t.Input.Sealed {
		return 0
	}
	return t.Input.Content.Max
}
