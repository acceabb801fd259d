package rollouts

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// roomCheck is how often to check whether the record has room again.
const roomCheck = time.Minute

func settingNotUnderstood(s situation) (Decision, bool) {
	return s.mistake(input.InvalidAnnotation, problems(s.Intent)), len(s.Intent.Mistakes.Problems) > 0
}

func templateMissing(s situation) (Decision, bool) {
	return s.mistake(input.NoTemplate, s.State.NoTemplate), s.State.NoTemplate != "" && s.asksToBeFollowed()
}

// asksToBeFollowed: an annotation on the workload or its namespace asks for it, or it was
// followed before and nothing forbids it. A source can ask for it too, but without a
// template the sources aren't known.
func (in Observation) asksToBeFollowed() bool {
	return in.Force != NoForce || in.Intent.Mode == settings.Follow || len(in.Intent.Images) > 0 || in.Intent.Mode == settings.Unset && len(in.Entry.Inputs) > 0
}

func recordTooNew(s situation) (Decision, bool) {
	return s.mistake(input.RecordTooNew, "a newer version of Lockstep has written its record"), s.Entry.TooNew && len(s.Findings) > 0
}

func tooManySources(s situation) (Decision, bool) {
	excess := s.excess()
	return s.mistake(input.TooManySources, excess), excess != ""
}

// recordFull: a workload isn't rolled out when that could not be put on record. No event
// reports that there is room again.
func recordFull(s situation) (Decision, bool) {
	d := s.mistake(input.RecordFull, s.RecordFull)
	d.Recheck = roomCheck
	return d, s.RecordFull != ""
}

// excess describes how the workload asks for too much, empty when it doesn't.
func (in Observation) excess() string {
	ids := make([]input.ID, 0, len(in.Findings))
	for _, f := range in.Findings {
		ids = append(ids, f.ID)
	}
	excess := cmp.Or(in.Intent.Mistakes.TooMany, in.TooMany, input.Excess(ids))
	switch {
	case excess != "":
		return excess
	case !in.followsWhatIsOnRecord() && in.room() > record.MaxRoom:
		return fmt.Sprintf("it follows %d ConfigMaps, Secrets and images, which take more than %d KiB in the record", len(ids), record.MaxRoom>>10)
	case in.asksToBeFollowed():
		return in.State.TooLarge
	}
	return ""
}

// mistake is a decision to wait until a user has corrected something. The record stays as
// it is.
func (in Observation) mistake(reason input.Reason, message string) Decision {
	return Decision{Verb: Leave, Reason: reason, Message: message, PendingSince: in.Entry.PendingSince}
}

// isMistake reports whether a user has to correct something before Lockstep can decide on
// the workload.
func (d Decision) isMistake() bool {
	switch d.Reason {
	case input.InvalidAnnotation, input.NoTemplate, input.TooManySources, input.RecordTooNew, input.RecordFull:
		return true
	default:
		return false
	}
}
