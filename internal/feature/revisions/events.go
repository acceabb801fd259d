package revisions

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/ownership"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// eventFor is the event of a decision. Most decisions change nothing and don't cause an
// event.
func eventFor(o *ownership.Owned, d Decision) (announce.Event, bool) {
	e := announce.Event{About: o.Reference(), Reason: string(d.Reason), Action: string(d.Verb)}
	switch d.Verb {
	case Attach:
		e.Note = "attached " + d.Message
	case Observe:
		e.Note = "observe mode: would attach " + d.Message
	case Report:
		e.Warning, e.Note = true, d.Message
	case Leave, Wait:
		return announce.Event{}, false
	}
	return e, true
}

// failureEvent is the event for owners that the API server refused.
func failureEvent(o *ownership.Owned, d Decision, err error) announce.Event {
	return announce.Event{
		About: o.Reference(), Warning: true, Reason: string(input.AttachFailed), Action: string(d.Verb),
		Note: "could not attach " + d.Message + ": " + err.Error(),
	}
}
