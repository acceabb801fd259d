package ask

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// The origins of an answer.
const (
	// FromRecord: the controller has it on record.
	FromRecord = "record"
	// FromEvent: the record can't be read or doesn't contain it, and an event does.
	FromEvent = "event"
	// FromEstimate: neither contains it; it was computed now, from what can be read.
	FromEstimate = "estimate"
	// FromFlags: it follows from the arguments of the controller's Deployment.
	FromFlags = "flags"
)

// NotOnRecord is the state of a workload that the controller hasn't decided on.
const NotOnRecord = "NotOnRecord"

// firstLook ends NotOnRecord, unless the record can't be read.
func firstLook(readable bool) string {
	if !readable {
		return "permission to read the record"
	}
	return "the controller's first check, and an input that it can follow"
}

// NotFollowedAnyMore is the state of a workload that was followed at the last check.
const NotFollowedAnyMore = "NotFollowedAnyMore"

// Report is the controller's decision on a workload.
type Report struct {
	// Reason is one of the [reasons and states](reasons.md).
	Reason string `json:"reason"`
	// Message is the controller's explanation.
	Message string `json:"message,omitempty"`
	// Since is the time at which the state began, omitted if that isn't known.
	Since *time.Time `json:"since,omitempty"`
	// Next is the time at which the controller checks again, omitted if only an event can change the
	// state.
	Next *time.Time `json:"next,omitempty"`
	// PendingSince is the time at which the oldest pending change was first seen.
	PendingSince *time.Time `json:"pendingSince,omitempty"`
	// Ends is the event or action that the workload waits for, omitted when it is in step.
	Ends string `json:"ends,omitempty"`
	// From is the origin of the state: "record", "event" (the record can't be read or doesn't
	// contain it), "estimate" (computed now from the objects that can be read) or "flags" (the
	// arguments of the controller's Deployment).
	From string `json:"from"`
}

// IsInStep reports whether the current versions were delivered.
func (s Report) IsInStep() bool { return s.Reason == string(input.InStep) }

// onRecord is the state according to the record.
func onRecord(e record.Entry) Report {
	if e.TooNew {
		return Report{
			Reason: string(input.RecordTooNew), From: FromRecord, Ends: input.Ends(input.RecordTooNew),
			Message: "a newer version of Lockstep has written its record",
		}
	}
	s := Report{Reason: string(input.InStep), From: FromRecord, PendingSince: known(e.PendingSince)}
	switch d := e.Decision; {
	case d.Reason == input.InStep:
		s.Since = known(latest(e.RolledOutAt, d.Since))
	case !d.IsZero():
		s.Reason, s.Message, s.Ends = string(d.Reason), d.Message, input.Ends(d.Reason)
		s.Since, s.Next = known(d.Since), known(d.Next)
	case e.PendingSince.IsZero():
		s.Since = known(latest(e.RolledOutAt, e.AsOf))
	default:
		// The patch met a conflict before any decision on the change was on record.
		s.Reason, s.Since, s.Ends = string(input.Changed), known(e.PendingSince), input.Ends(input.QuietWindow)
	}
	return s
}

// toldBy is the state according to our newest decision among the events, or else to our newest
// warning; false when there is neither.
func toldBy(events []announce.Reported) (Report, bool) {
	e := newest(events, announce.Reported.IsDecision)
	if e == nil {
		e = newest(events, announce.Reported.IsWarning)
	}
	if e == nil {
		return Report{}, false
	}
	return Report{Reason: e.Reason, Message: e.Note, Since: known(e.At), Ends: input.Ends(input.Reason(e.Reason)), From: FromEvent}, true
}

// newest is the newest event that counts, nil when none does.
func newest(events []announce.Reported, counts func(announce.Reported) bool) *announce.Reported {
	var found *announce.Reported
	for i := range events {
		if e := &events[i]; counts(*e) && (found == nil || e.At.After(found.At)) {
			found = e
		}
	}
	return found
}

// standsFor reports whether an event shows the state of a workload that isn't on record: the
// record can't be read, or has no room for it.
func (s Report) standsFor(readable bool) bool {
	return !readable || s.Reason == string(input.RecordFull)
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// IsSettled reports whether nothing has to end: the workload is in step, or the event is
// about something that is over.
func (s Report) IsSettled() bool { return s.IsInStep() || s.Ends == "" && s.Reason != NotOnRecord }
