package podsync

import (
	"errors"
	"log/slog"
)

// log logs the result of a step. A success has no reason: each remaining step logs its own
// line. A failure has the cause, and the number of failures if it counts as one.
func (a *Agent) log(o Outcome) {
	log := a.parts.Log.With("generation", o.Decision.Generation)
	if o.Err == nil {
		a.logDone(log, o)
		return
	}
	log = log.With("reason", a.reasonAfter(o))
	if a.state.Failures > 0 && (o.Decision.Verb == Notify || o.Decision.Verb == Confirm) {
		log = log.With("failures", a.state.Failures)
	}
	log.Warn(a.failure(o) + ": " + o.Err.Error())
}

func (a *Agent) logDone(log *slog.Logger, o Outcome) {
	switch o.Decision.Verb {
	case Stage:
		log.Debug("staged")
	case Check:
		log.Info("checked")
	case Publish:
		log.Info("published", "files", o.Files, "bytes", o.Bytes)
	case Notify:
		log.Info("notified")
	case Confirm:
		log.Info("confirmed")
	case RollBack:
		log.Warn("rolled back", "refused", a.state.Barred)
	case StartChild:
		log.Info("application started")
	case Wait, Exit:
	}
}

// failure names the step that failed.
func (a *Agent) failure(o Outcome) string {
	_, working := errors.AsType[*UnansweredError](o.Err)
	_, unreachable := errors.AsType[*UnreachableError](o.Err)
	switch {
	case o.Decision.Verb == RollBack:
		return "not rolled back"
	case o.Decision.Verb == StartChild:
		return "application not started"
	case o.Decision.Verb == Confirm:
		return "not confirmed"
	case working:
		return "notified, waiting for the answer"
	case o.Decision.Verb != Notify:
		return "refused"
	case a.state.Failures == 0:
		return "not notified yet"
	case unreachable:
		return "not notified"
	default:
		return "refused by the application"
	}
}

// logSources logs errors about the sources.
func (a *Agent) logSources() {
	var missing error
	if names := a.planned.snapshot.Missing; len(names) > 0 {
		missing = &MissingError{Sources: names}
	}
	a.complain("waiting for a missing source", missing)
	large, conflict := a.planned.err, error(nil)
	if a.planned.refused() != SetTooLarge {
		large, conflict = nil, a.planned.err
	}
	a.complain("the sources are too large; the published set stays", large)
	a.complain("the sources conflict; the published set stays", conflict)
	a.complain("some keys are left out", a.planned.tree.LeftOut)
}

// complain logs an error once until it changes.
func (a *Agent) complain(words string, err error) {
	if err == nil {
		delete(a.complaints, words)
		return
	}
	if a.complaints[words] != err.Error() {
		a.parts.Log.Warn(words, "error", err)
	}
	a.complaints[words] = err.Error()
}
