package configs

import (
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Observation is everything that the verdict on one source of one workload
// depends on.
type Observation struct {
	// Delivered is the version on record, zero when there is none, and Recorded the same as
	// it was written there: an earlier program may have measured it in another way.
	Delivered, Recorded fingerprint.Version
	// Current is the version that exists, or absent.
	Current fingerprint.Version
	// Required is true when pods cannot start without the source.
	Required bool
	// Running is true when a pod of the workload has started from its template, and
	// Unobserved when its controller has not acted on it yet, so that this is not known.
	Running, Unobserved bool
	// Unrolled is true while pods are made from another template than the workload has.
	Unrolled bool
	// Original is true for a drop-in, which restarts pods onto what is missing as its
	// original did.
	Original bool
	// Sealed is true when the version on record came from an immutable object.
	Sealed bool
	// Timeline is what happened to workload and source, as far as it is known.
	Timeline timeline.Timeline
}

// Verdict is what has to happen for one source, and why.
type Verdict struct {
	Standing input.Standing
	Reason   input.Reason
}

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(Observation) (Verdict, bool)

// Decide compares what a workload was given with what exists. The first check
// that knows an answer gives it.
func Decide(o Observation) Verdict {
	for _, c := range []check{
		sourceMissing,       // no workload is restarted onto a missing source
		firstSight,          // nothing on record: take a baseline
		measuredOtherwise,   // other keys, other algorithm: take a baseline
		equal,               // given what exists
		immutableReplaced,   // no node tells its new pods
		requiredArrived,     // the pods could not have started before
		rolledOutSince,      // another rollout loaded it
		deliveredUnrecorded, // we delivered it, and the process ended before that was on record
	} {
		if v, known := c(o); known {
			return v
		}
	}
	return Verdict{input.Due, input.Changed}
}

// sourceMissing keeps the record as it is: a source that comes back with the
// same content is no change, one with another content is. Only a workload that
// is new to us is recorded as one that started without the source; unless its pods run,
// which they could not without: then they have loaded something that we never saw. A
// rollout by another writer starts pods without a source that is optional.
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
	if !o.Required && !o.Delivered.IsAbsent() && o.Timeline.RolledOutUnaccounted() {
		return Verdict{input.Record, input.DeliveredByRollout}, true
	}
	return Verdict{input.Settled, input.Missing}, true
}

// firstSight takes what exists as given, unless the source certainly changed
// after the workload took up its template and asked to be followed. A required
// source that was made after it is no change: the pods waited for it, and only we
// look at the two so late that it exists already.
func firstSight(o Observation) (Verdict, bool) {
	if !o.Delivered.IsZero() {
		return Verdict{}, false
	}
	later := o.Timeline.ChangedSinceFollowed() || o.Timeline.AppearedSince()
	if later && o.Required && o.Timeline.Input.New {
		return Verdict{input.Record, input.Arrived}, true
	}
	if later || o.Timeline.ChangedAfterUnseenStart() {
		return Verdict{input.Due, input.Changed}, true
	}
	return Verdict{input.Record, input.Baseline}, true
}

// measuredOtherwise: a template that uses other keys loads them with its rollout. Until
// that begins, the pods have what is on record.
func measuredOtherwise(o Observation) (Verdict, bool) {
	standing := input.Record
	if o.Unrolled {
		standing = input.Settled
	}
	return Verdict{standing, input.NewBasis}, !o.Delivered.Comparable(o.Current)
}

// equal, unless the pods were given something else meanwhile and the content has
// gone back since.
func equal(o Observation) (Verdict, bool) {
	if o.Delivered != o.Current || o.Timeline.GaveAnother() || o.Timeline.IsGivingAnother() || o.Timeline.MayHaveDeliveredAnother() {
		return Verdict{}, false
	}
	if o.Timeline.ShowsEarlier() {
		return Verdict{input.Settled, input.Undone}, true
	}
	return Verdict{input.Settled, input.InStep}, true
}

// ranWithout reports whether the pods run, and have loaded a source before it was deleted.
func (o Observation) ranWithout() bool {
	return o.Current.IsAbsent() && o.Delivered.IsZero() && o.Required && o.Running
}

// immutableReplaced: whoever rolls it out, pods on a node that has the old copy load that.
// A person who says "lockstep roll" has seen to it.
func immutableReplaced(o Observation) (Verdict, bool) {
	return Verdict{input.Due, input.ImmutableReplaced}, o.Sealed && !o.Timeline.GaveThis()
}

// lastDelivered is what the pods were given last. Of what is not on record only the
// digest that the template shows is known.
func (o Observation) lastDelivered() fingerprint.Version {
	switch {
	case o.Timeline.GaveAnother():
		return fingerprint.Version{Basis: o.Current.Basis, Sum: o.Timeline.Workload.Shows.Digest}
	case o.Current.IsAbsent() || o.Delivered.IsZero() || o.Delivered == o.Current:
	case o.waitedFor(), o.Timeline.OrderUnknown():
		return o.Current.Unknown()
	}
	return o.Delivered
}

// rebased is the version on record as it is measured now, zero when it is on record so.
// One that differs from what exists stays as it was written: should the content go back
// to it, only that tells.
func (o Observation) rebased() fingerprint.Version {
	if o.Recorded == o.Delivered || o.Delivered != o.Current {
		return fingerprint.Version{}
	}
	return o.Delivered
}

// needsRevisions: only what looks due, and a workload that was made while the
// controller was down, are worth a question to the API server; and only when no watch
// saw the source change. So is a rollout that began before the one before it had ended.
func (o Observation) needsRevisions(v Verdict) bool {
	if v.Reason == input.DeliveredByRollout && o.Timeline.Workload.OlderPods {
		return !o.Unobserved
	}
	if o.Current.IsAbsent() || !o.Timeline.IsUnwatched() {
		return false
	}
	return v.Standing == input.Due || v.Reason == input.Baseline && o.Timeline.MadeUnseen()
}

// requiredArrived: the pods waited for it. Should it have changed since, they may have
// loaded what it was made with.
func requiredArrived(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.Arrived}, o.waitedFor() && !o.Timeline.ChangedSinceMade()
}

// waitedFor reports whether the pods on record could not start without the source.
func (o Observation) waitedFor() bool {
	return o.Delivered.IsAbsent() && o.Required
}

// rolledOutSince: another rollout loaded it. This makes a deploy of ConfigMap and
// template together one rollout.
func rolledOutSince(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredByRollout}, o.Timeline.RolledOutSince()
}

// deliveredUnrecorded is not about a version on record: a revision of ours that shows it tells
// nothing of what the pods loaded after that one.
func deliveredUnrecorded(o Observation) (Verdict, bool) {
	return Verdict{input.Record, input.DeliveredBefore}, o.Delivered != o.Current && o.Timeline.DeliveredUnrecorded()
}
