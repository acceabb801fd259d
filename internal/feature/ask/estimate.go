package ask

import (
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// comparison compares the controller's decision with the objects that can be read now.
//
// Both apply the same rule, and the controller knows more: times, other workloads, registries. So
// the rule is applied to the objects with the part that only the controller knows as the decision
// on record implies it (see assume). The decision on record is outdated when the outcome shows that
// an object has changed since.
type comparison struct {
	// recorded is the decision on record, and now the outcome for the objects.
	recorded, now input.Reason
	// isSame is true when both have the same words: a decision on a user's mistake names no version.
	isSame bool
	// isDue is true when the current version of an input isn't delivered, and isNew when that
	// version isn't on record either.
	isDue, isNew bool
	// isBlind is true when an object that the decision depends on couldn't be read.
	isBlind bool
}

// age is how old a decision is, compared with the objects.
type age int

const (
	// upToDate: it follows from the objects that can be read, or from what only the controller knows.
	upToDate age = iota
	// outdated: an object has changed since, and the rule tells the next decision.
	outdated
	// superseded: an object has changed since, and the next decision isn't known.
	superseded
)

// age is the whole rule for estimates.
func (c comparison) age() age {
	switch {
	case c.isSame, c.now == input.GenerationNotObserved:
		return upToDate // the record stays as it is until that is over
	case c.isBlind && c.isNew && !forbids(c.now):
		return superseded
	case c.isBlind && (!forbids(c.now) || isDeniable(c.recorded)):
		return upToDate // an object that isn't visible may be the cause
	case c.recorded == c.now && c.now == input.QuietWindow:
		return upToDate // while a source keeps changing, its version is recorded once a minute
	case c.isNew:
		return outdated
	case c.recorded == c.now:
		return upToDate
	case forbids(c.now), c.now == input.NotFollowed, c.now == input.NoTemplate, c.now == input.Missing, c.now == input.Undone:
		return outdated
	case isDeniable(c.recorded), c.recorded == input.AwaitsWorkload, !c.isDue && awaitsDelivery(c.recorded):
		return outdated
	}
	return upToDate
}

// forbids reports whether a user forbids changes with an object that can be read. An object that
// can't be read may only add to that.
func forbids(reason input.Reason) bool {
	switch reason {
	case input.InvalidAnnotation, input.Stopped, input.AwaitsWindow, input.Held, input.Paused:
		return true
	default:
		return false
	}
}

// isDeniable reports whether the objects lead to the reason as long as it applies, if all of them can
// be read.
func isDeniable(reason input.Reason) bool {
	switch reason {
	case input.NotFollowed, input.NoTemplate, input.Missing, input.Undone:
		return true
	default:
		return forbids(reason)
	}
}

// awaitsDelivery reports whether the reason is about a version that isn't delivered.
func awaitsDelivery(reason input.Reason) bool {
	switch reason {
	case input.QuietWindow, input.AwaitsTurn, input.AwaitsFirst, input.Damped, input.VersionStopped, input.Changed, input.ImmutableReplaced,
		input.BeyondStrategy, input.StrategyOff, input.ReloadFailed, input.Quarantined, input.Contested:
		return true
	default:
		return false
	}
}

// assume adds the part that only the controller knows, as its decision implies it: sources are
// quiet unless it waits for that, and others go first if it waits for them.
func assume(in rollouts.Observation, recorded input.Reason) rollouts.Observation {
	switch recorded {
	case input.InStep, "":
		return in // nothing was due yet
	case input.QuietWindow:
		in = changedAt(in, in.Now)
		in.Intent.Quiet, in.Entry.DelaySince = time.Hour, time.Time{}
		return in
	case input.RecordFull:
		in.RecordFull = in.Entry.Decision.Message
	case input.TooManySources:
		in.TooMany = in.Entry.Decision.Message
	case input.AwaitsTurn:
		in.Turn.Refused = true
	case input.AwaitsFirst:
		in.Turn.Refused = true
		in.Turn.Canary, _, _ = strings.Cut(in.Entry.Decision.Message, ": ")
	case input.AwaitsWorkload:
		in.Gates.After = strings.Join(in.Intent.After, ", ")
	case input.Damped:
		why, _, _ := strings.Cut(in.Entry.Decision.Message, ": ")
		in.Gates.Damped = rollouts.DampedState{Until: in.Now.Add(time.Hour), Why: why}
	default: // it follows from the objects alone, or the objects can't tell
	}
	return changedAt(in, time.Time{})
}

// changedAt is the same with inputs that changed at another time; zero for long ago.
func changedAt(in rollouts.Observation, at time.Time) rollouts.Observation {
	in.Findings = slices.Clone(in.Findings)
	for i := range in.Findings {
		in.Findings[i].ChangedAt = at
	}
	return in
}

// estimate is the decision that the controller is about to take, nil while its last one is as new as
// the objects that can be read.
func (s *Situation) estimate(state Report) *Report {
	switch {
	case state.Reason == NotOnRecord:
		if live := s.live(); !s.saysNothing(live.Reason) {
			return &live
		}
		return nil
	case state.From == FromEvent:
		return s.sinceEvent(state)
	case !s.Recorded, s.Entry.TooNew, state.From == FromFlags:
		return nil
	}
	recorded := input.Reason(state.Reason)
	in := s.Live
	isNew := slices.ContainsFunc(in.Findings, s.isNew)
	if !isNew || recorded != input.QuietWindow {
		in = assume(in, recorded)
	}
	now := s.rolledOut(rollouts.Decide(in))
	isDue := slices.ContainsFunc(in.Findings, func(f input.Finding) bool { return f.Standing == input.Due })
	isSame := now.Reason == recorded && record.Brief(now.Message) == state.Message
	c := comparison{recorded: recorded, now: now.Reason, isSame: isSame, isDue: isDue, isNew: isNew, isBlind: s.isBlind(recorded)}
	var next Report
	switch c.age() {
	case upToDate:
		return nil
	case outdated:
		next = s.report(now)
	case superseded:
		next = undecided(now.Message + ", which is not on record yet")
	}
	if isDue {
		next.PendingSince = state.PendingSince
	}
	return &next
}

// rolledOut corrects the reason of a release whose rollout is written, and not on record yet: the versions
// that the pod template shows weren't accepted without a rollout.
func (s *Situation) rolledOut(d rollouts.Decision) rollouts.Decision {
	isUnwritten := func(f input.Finding) bool {
		return slices.Contains(s.Live.Template.Released, f.ID) && (f.Shows == input.Mark{} || s.Workload.Shown[f.ID] != f.Shows)
	}
	if d.Reason == input.Released && !slices.ContainsFunc(s.Live.Findings, isUnwritten) {
		d.Reason = input.DeliveredBefore
	}
	return d
}

// undecided is the estimate where the next decision isn't known.
func undecided(message string) Report {
	return Report{Reason: string(input.Changed), Message: message, Ends: "the controller's next check", From: FromEstimate}
}

// isNew reports whether the current version of an input isn't delivered, and not on record either.
func (s *Situation) isNew(f input.Finding) bool {
	return f.Standing == input.Due && s.Entry.Inputs[f.ID].Due != f.Current.Short()
}

// isBlind reports whether an object that the decision depends on couldn't be read: an object of the
// user's or the operator's, a version, a revision, or a flag of the controller.
func (s *Situation) isBlind(recorded input.Reason) bool {
	isUnreadable := func(f input.Finding) bool { return f.Reason == input.Unreadable }
	return s.Blind || len(s.Hidden) > 0 || slices.ContainsFunc(s.Live.Findings, isUnreadable) ||
		s.Live.History.Past.Refused != nil || s.dependsOnFlags(recorded)
}

// dependsOnFlags reports whether flags that aren't known may be the reason: they have a window, and
// the annotations of other tools.
func (s *Situation) dependsOnFlags(recorded input.Reason) bool {
	return s.Fleet.Watches == nil && (recorded == input.InvalidAnnotation || recorded == input.AwaitsWindow && s.Live.Gates.Window == rollouts.WindowState{})
}

// sinceEvent is the estimate for a state from an event: without the record, only what a user forbids
// can be compared with it, and nothing tells the next decision.
func (s *Situation) sinceEvent(state Report) *Report {
	told := input.Reason(state.Reason)
	if !forbids(told) || s.isBlind(told) || told == input.Held && !strings.Contains(state.Message, "by annotation "+settings.Hold) {
		return nil // a hold whose annotation an undo removed is only on record
	}
	in := changedAt(s.Live, time.Time{})
	in.Findings = append(in.Findings, input.Finding{ID: input.ConfigMap("any")})
	for i := range in.Findings {
		in.Findings[i].Standing = input.Due
	}
	if rollouts.Decide(in).Reason == told {
		return nil
	}
	next := undecided("the reason of that event no longer applies")
	return &next
}

// live is the controller's own decision, based on what can be read now.
func (s *Situation) live() Report { return s.report(rollouts.Decide(s.Live)) }

func (s *Situation) report(d rollouts.Decision) Report {
	return Report{Reason: string(d.Reason), Message: d.Message, Ends: s.ends(d.Reason, input.Ends(d.Reason)), From: FromEstimate}
}

// saysNothing reports whether the estimate for a workload that isn't on record only says what can't
// be read: the inputs, or the record.
func (s *Situation) saysNothing(estimate string) bool {
	return s.isBlind("") && estimate == string(input.InStep) || !s.Readable && estimate == string(input.Baseline)
}

// ends adds what the workload waits for once the quiet window, the maintenance window or the stop
// is over, such as the end of a hold.
func (s *Situation) ends(reason input.Reason, ends string) string {
	in := changedAt(s.Live, time.Time{})
	for {
		switch reason {
		case input.QuietWindow:
		case input.AwaitsWindow:
			in.Gates.Window = rollouts.WindowState{}
		case input.Stopped:
			in.Gates.Stopped = false
		default:
			return ends
		}
		next := rollouts.Decide(in).Reason
		if after := input.Ends(next); after != "" && next != reason {
			ends += ", and then for " + after
		}
		reason = next
	}
}
