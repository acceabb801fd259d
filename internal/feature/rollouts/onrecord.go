package rollouts

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// isInStep reports whether the workload runs all current versions, or will without
// another decision.
func (d Decision) isInStep() bool {
	switch {
	case d.Reason == input.AwaitsPods:
		return false
	case d.Delivered, d.Verb == Remember, d.Verb == Ignore:
		return true
	}
	return d.Reason == input.InStep
}

// oftenLooked is the interval up to which the next check isn't recorded again: a series
// of evictions checks every few seconds, and would write each time.
const oftenLooked = time.Minute

// onRecord is the decision that the record shows to users while it stands. The same
// decision is written once, and again only when the announced check has changed nothing.
func (d Decision) onRecord(before record.Decision, now time.Time, recheck time.Duration) record.Decision {
	switch {
	case d.isInStep() && (before.IsZero() || d.Verb == RollOut):
		return record.Decision{} // the patch, or the beginning of the entry, shows since when
	case d.isInStep() && before.Reason == input.InStep:
		return before
	case d.isInStep():
		return record.NewDecision(input.InStep, "", now, time.Time{})
	}
	since, next := now, time.Time{}
	if (before.Reason == d.Reason || awaitsOthers(before.Reason) && awaitsOthers(d.Reason)) && before.Since.Before(now) {
		since = before.Since
	}
	if recheck > 0 {
		next = now.Add(recheck)
	}
	told := record.NewDecision(d.Reason, d.Message, since, next)
	isSame := told.Reason == before.Reason && told.Message == before.Message
	if isSame && !next.IsZero() && !before.Next.IsZero() && (before.Next.After(now) || recheck <= oftenLooked) {
		told.Next = before.Next
	}
	return told
}

// told is the decision on record, as far as it counts for the due inputs. A workload that waits for its turn
// waits for the proof of each version anew.
func (in Observation) told(due []input.Finding) record.Decision {
	told := in.Entry.Decision
	isNew := func(f input.Finding) bool { return in.Entry.Inputs[f.ID].Due != f.Current.Short() }
	if awaitsOthers(told.Reason) && slices.ContainsFunc(due, isNew) {
		told.Since = in.Now
	}
	return told
}

// stillWaits reports whether the record already shows that these inputs wait for the
// quiet window. While their content keeps changing, the due version is recorded within a
// minute. Recording it at every change would cost a write per second for each ConfigMap
// of the record.
func (in Observation) stillWaits(d Decision) bool {
	before := in.Entry.Decision
	written := before.Next.Add(-in.Intent.Quiet) // or later, where the maximum delay ends the wait
	if d.Reason != input.QuietWindow || before.Reason != input.QuietWindow || !written.Add(oftenLooked).After(in.Now) {
		return false
	}
	return !slices.ContainsFunc(in.Findings, func(f input.Finding) bool {
		return (f.Standing == input.Due) != (in.Entry.Inputs[f.ID].Due != "")
	})
}

// isOvertaken reports whether another writer changed or deleted the workload meanwhile. The
// watch delivers the new state.
func (d Decision) isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || d.Verb == RollOut && apierrors.IsNotFound(err)
}

// failedOnRecord is the decision on record after an error. An error that only causes
// another attempt isn't recorded.
func (d Decision) failedOnRecord(err error, before record.Decision, now time.Time) record.Decision {
	if d.isOvertaken(err) {
		return before
	}
	return d.failure(err).onRecord(before, now, 0)
}

// note records a decision, and nothing else, for a workload that is already on record.
func (r *Reconciler) note(w *kube.Workload, in Observation, d Decision) error {
	if !in.Entry.IsKnown() || in.Entry.TooNew || in.Entry.Lost {
		return nil
	}
	return r.putNote(w, in, d, in.Entry.Clone())
}

// noteMistake records what a user has to correct, and stops the maximum delay, because
// the workload can't be rolled out until then. A hold doesn't depend on the mistake.
// Everything else on record stays as it is.
func (r *Reconciler) noteMistake(w *kube.Workload, in Observation, d Decision) error {
	if in.Entry.TooNew || in.Entry.Lost || !in.Entry.IsKnown() && (in.RecordFull != "" || !r.reserveForNew(w, in.Entry)) {
		return nil
	}
	e := in.Entry.Clone()
	e.DelaySince = time.Time{}
	if in.Entry.IsKnown() {
		e.Hold = in.holdBesideMistake()
	}
	return r.putNote(w, in, d, e)
}

// reserveForNew reserves room for a workload that wasn't followed yet, and reports
// whether it can be put on record. The entry of an earlier workload of the same name may
// still be needed.
func (r *Reconciler) reserveForNew(w *kube.Workload, e record.Entry) bool {
	if r.Room == nil {
		return false
	}
	if stored, ok := r.Records.Entry(w.Key); ok && (stored.UID != w.UID || stored.Left) {
		return false
	}
	return r.Room.Reserve(w.Key, e.Room()) == ""
}

func (r *Reconciler) putNote(w *kube.Workload, in Observation, d Decision, e record.Entry) error {
	e.Decision = d.onRecord(in.Entry.Decision, in.Now, d.Recheck)
	if r.Room != nil && r.Room.Reserve(w.Key, e.Room()) != "" {
		e.Decision.Message = "" // the entries of all other workloads come first
	}
	if e.Equal(in.Entry) {
		return nil
	}
	return r.Records.Put(w.Key, e)
}
