package configs

import (
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Observation is everything that the verdict on one source of one workload
// depends on.
type Observation struct {
	// Delivered is the version on record, zero when there is none.
	Delivered fingerprint.Version
	// Current is the current version, or absent.
	Current fingerprint.Version
	// Required is true when pods cannot start without the source.
	Required bool
	// Mixed is true when other places don't require it: pods that wait may have passed those without it.
	Mixed bool
	// Running is true when a pod of the workload has started from its template, and
	// Unobserved when its controller hasn't acted on the template yet, so Running isn't
	// known.
	Running, Unobserved bool
	// Unrolled is true while pods are created from another template than the workload's.
	Unrolled bool
	// Original is true for a drop-in, which restarts pods even when a source is missing,
	// as its original did.
	Original bool
	// Sealed is true when the version on record came from an immutable object.
	Sealed bool
	// Between is true when pods may have loaded another version since the one on record.
	Between bool
	// Timeline is the known history of workload and source.
	Timeline timeline.Timeline
}

// Verdict is what to do for one source, and why.
type Verdict struct {
	Standing input.Standing
	Reason   input.Reason
}

// check is one step of the rule: it decides, or leaves the decision to the next.
type check func(Observation) (Verdict, bool)

// Decide compares the delivered version with the current one. The first check that
// applies decides.
func Decide(o Observation) Verdict {
	for _, c := range []check{
		sourceMissing,       // a missing source doesn't restart a workload
		firstSight,          // nothing on record: take a baseline
		measuredOtherwise,   // another algorithm, or other keys that a rollout has loaded: take a baseline
		equal,               // the current version was delivered
		immutableReplaced,   // nodes don't load the new copy
		requiredArrived,     // the pods could not have started before
		rolledOutSince,      // another rollout loaded it
		deliveredUnrecorded, // we delivered it, and the process ended before that was on record, or didn't get the answer
		rollsOut,            // another rollout may load it, and its revision will show that
	} {
		if v, known := c(o); known {
			return v
		}
	}
	return Verdict{input.Due, input.Changed}
}

// sourceMissing keeps the record as it is. A source that returns with the same content
// isn't a change; other content is. A workload that is new to Lockstep is recorded as
// started without the source, unless it requires the source and its pods run: then they
// loaded a version that Lockstep never saw. Another writer's rollout starts pods without
// an optional source, and takes pods past the optional places of a required one.
func sourceMissing(o Observation) (Verdict, bool) {
	if !o.Current.IsAbsent() {
		return Verdict{}, false
	}
	if o.Delivered.IsZero() && o.Required && o.Unobserved {
		return Verdict{input.Settled, input.GenerationNotObserved}, true
	}
	if o.Delivered.IsZero() {
		return Verdict{input.Record, input.Missing}, true
	}
	if (!o.Required || o.Mixed) && !o.Delivered.IsAbsent() && o.Timeline.RolledOutUnaccounted() {
		return Verdict{input.Record, input.DeliveredByRollout}, true
	}
	return Verdict{input.Settled, input.Missing}, true
}

// firstSight records the current version as the baseline, unless the source certainly
// changed after the workload took up its template and asked to be followed, or another
// rollout may have loaded an earlier version: its template may be the first that uses the
// source. A required source that was created after the workload isn't a change if the pods
// waited for it.
func firstSight(o Observation) (Verdict, bool) {
	if !o.Delivered.IsZero() {
		return Verdict{}, false
	}
	later := o.Timeline.ChangedSinceFollowed() || o.Timeline.AppearedSince()
	if later && o.waitedFor() {
		return Verdict{}, false
	}
	if later || o.Timeline.ChangedAfterUnseenStart() || o.Timeline.ChangedAfterUnseenAsk() || o.Timeline.MayHaveLoadedAnother() {
		return Verdict{input.Due, input.Changed}, true
	}
	return Verdict{input.Record, input.Baseline}, true
}

// measuredOtherwise: a template that uses other keys loads them with its rollout. Until
// that begins, pods run the version on record. If the content may have changed after that
// rollout, the version that its pods run isn't known.
func measuredOtherwise(o Observation) (Verdict, bool) {
	switch {
	case o.Delivered.Comparable(o.Current):
		return Verdict{}, false
	case o.Unrolled:
		return Verdict{input.Settled, input.NewBasis}, true
	}
	return Verdict{input.Record, input.NewBasis}, o.Original || o.Delivered.SameKeys(o.Current) || o.Timeline.Loaded() == timeline.Yes
}

// equal, unless another version was delivered to the pods meanwhile and the content has
// changed back since.
func equal(o Observation) (Verdict, bool) {
	if o.Delivered != o.Current || o.Between || o.Timeline.DeliveredAnother() || o.Timeline.IsDeliveringAnother() || o.Timeline.MayHaveDeliveredAnother() {
		return Verdict{}, false
	}
	if o.Timeline.ShowsEarlier() {
		return Verdict{input.Settled, input.Undone}, true
	}
	return Verdict{input.Settled, input.InStep}, true
}

// ranWithout reports whether the pods run, and so loaded a required source before it was
// deleted.
func (o Observation) ranWithout() bool {
	return o.Current.IsAbsent() && o.Delivered.IsZero() && o.Required && o.Running
}

// isGone reports whether the source was delivered and doesn't exist any more.
func (o Observation) isGone() bool {
	return o.Current.IsAbsent() && !o.Delivered.IsAbsent() && !o.Delivered.IsZero()
}

// immutableReplaced: whichever writer rolls it out, pods on a node that keeps the old copy
// load that copy. A user who runs "lockstep roll" has taken care of it. Versions of other keys
// don't show whether it was replaced.
func immutableReplaced(o Observation) (Verdict, bool) {
	return Verdict{input.Due, input.ImmutableReplaced}, o.Sealed && o.Delivered.Comparable(o.Current) && !o.Timeline.DeliveredThis()
}

// lastDelivered is the version that was last delivered to the pods. For a version that
// isn't on record only the digest in the template is known.
func (o Observation) lastDelivered() fingerprint.Version {
	switch {
	case o.Timeline.DeliveredAnother():
		return fingerprint.Version{Basis: o.Current.Basis, Sum: o.Timeline.Workload.Shows.Digest}
	case o.Current.IsAbsent() || o.Delivered.IsZero() || o.Delivered == o.Current:
	case o.waitedFor(), o.Timeline.OrderUnknown():
		return o.Current.Unknown()
	}
	return o.Delivered
}

// isOlderThanRecord reports whether the time of the last write is that of an earlier one: the record is as
// new and has another version, so the content was changed later, by a write that left no time.
func (o Observation) isOlderThanRecord() bool {
	return o.Delivered != o.Current && o.Delivered.Comparable(o.Current) && !o.Timeline.Input.WrittenAt.After(o.Timeline.Record.AsOf)
}

// needsRevisions: Lockstep queries the API server only when an input looks due or the
// workload was created while the controller was down, and no watch saw the order.
func (o Observation) needsRevisions(v Verdict) bool {
	if o.Current.IsAbsent() {
		return false
	}
	if v.Standing == input.Due {
		return o.Timeline.IsUnwatched() || o.Timeline.Loaded() == timeline.Unknown
	}
	return v.Reason == input.Baseline && o.Timeline.IsUnwatched() && o.Timeline.MadeUnseen()
}

// needsPods: the revisions didn't show whether another writer's rollout has loaded an input that
// looks due. A rollout that hasn't begun doesn't have pods yet.
func (o Observation) needsPods(v Verdict) bool {
	return v.Standing == input.Due && v.Reason == input.Changed && !o.Unobserved && o.Timeline.Past.Asked && !o.Timeline.Past.NotActed &&
		o.Timeline.Loaded() == timeline.Unknown
}

// requiredArrived: the pods waited for it. It may have had other content before, so their starts show
// which one they loaded, but not before the workload's controller has acted on the template. An optional volume
// may have been mounted without it.
func requiredArrived(o Observation) (Verdict, bool) {
	arrived := o.Original && o.Timeline.Input.New || o.Timeline.StartedSinceArrival() && (!o.Mixed || !o.Timeline.Input.Mounted) || o.Timeline.Loaded() == timeline.Yes
	if !arrived && o.Unobserved {
		return Verdict{input.Settled, input.GenerationNotObserved}, o.waitedFor()
	}
	return Verdict{input.Record, input.Arrived}, arrived && o.waitedFor()
}

// waitedFor reports whether the pods on record could not start without the source. One that the watch
// saw appear isn't on record before that.
func (o Observation) waitedFor() bool {
	return o.Required && (o.Delivered.IsAbsent() || o.Delivered.IsZero() && o.Timeline.Input.New)
}

// rolledOutSince: another rollout loaded it. This makes deploying a ConfigMap and a
// template together one rollout.
// Our own patch that isn't on record is left to the next check.
func rolledOutSince(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredByRollout}, o.Timeline.Loaded() == timeline.Yes && !o.Timeline.DeliveredThis()
}

// deliveredUnrecorded doesn't apply to a version on record: our own revision that shows the
// version doesn't show what pods loaded after that revision.
func deliveredUnrecorded(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredBefore}, o.Delivered != o.Current && o.Timeline.DeliveredUnrecorded()
}

// rollsOut: another writer's rollout came after the content, and older pods may go on. The revision shows whether
// they do, once the workload's controller has made it.
func rollsOut(o Observation) (Verdict, bool) {
	isLater := o.Timeline.Workload.Template.After(o.Timeline.Input.Content)
	return Verdict{input.Settled, input.GenerationNotObserved}, o.Unobserved && isLater && o.Timeline.Loaded() == timeline.Unknown
}
