package podsync

import "time"

// Verb is what to do next.
type Verb string

// The verbs, in the order of the pipeline.
const (
	Wait       Verb = "wait"
	Stage      Verb = "stage"
	Check      Verb = "check"
	Publish    Verb = "publish"
	Notify     Verb = "notify"
	Confirm    Verb = "confirm"
	RollBack   Verb = "rollback"
	StartChild Verb = "start"
	Exit       Verb = "exit"
)

// Reason says why. The same word is in the log, the status file, the metrics
// and the documentation.
type Reason string

// The reasons.
const (
	// WaitingForSources: not every source has been read yet.
	WaitingForSources Reason = "WaitingForSources"
	// SourceConflict: the sources cannot become one set of files; the published
	// set stays.
	SourceConflict Reason = "SourceConflict"
	// Changed: the sources hold something that is not published.
	Changed Reason = "Changed"
	// Damaged: the published files are not as they were published, because another
	// program changed them or a publish failed half-way; they are put back.
	Damaged Reason = "Damaged"
	// WaitingForQuiet: changes may still be coming in.
	WaitingForQuiet Reason = "WaitingForQuiet"
	// TooSoon: the last reload is less than the minimum interval ago.
	TooSoon Reason = "TooSoon"
	// Rejected: the checker refused the observed set; it is tried again later.
	Rejected Reason = "Rejected"
	// NotDelivered: the application has not been told of the published set.
	NotDelivered Reason = "NotDelivered"
	// NotConfirmed: the application was told and has not shown the result.
	NotConfirmed Reason = "NotConfirmed"
	// Unreachable: the application cannot be asked, perhaps because it is
	// starting; that is tried again.
	Unreachable Reason = "Unreachable"
	// RetryLater: telling failed and is tried again after a pause.
	RetryLater Reason = "RetryLater"
	// TooManyFailures: telling failed as often as allowed.
	TooManyFailures Reason = "TooManyFailures"
	// ChildStopped: the application ended by itself.
	ChildStopped Reason = "ChildStopped"
	// ChildNotStarted: the first set is in place and the application is next.
	ChildNotStarted Reason = "ChildNotStarted"
	// RolledBack: an earlier set is in place because the newest one failed.
	RolledBack Reason = "RolledBack"
	// InStep: nothing to do.
	InStep Reason = "InStep"
)

// Observed is what the sources hold.
type Observed struct {
	// Generation names the set; empty until every source was read.
	Generation string
	// FirstChange and LastChange bound the burst that led to it.
	FirstChange, LastChange time.Time
	// Conflict is set when the sources cannot become one set.
	Conflict bool
	// Damaged is set when the sources hold the published set and readers find
	// something else.
	Damaged bool
}

// ChildPhase says what the application in subprocess mode does.
type ChildPhase int

// The phases of a child.
const (
	NoChild ChildPhase = iota
	ChildPending
	ChildRunning
	ChildExited
)

// Timing is the part of the options that deciding depends on.
type Timing struct {
	// Quiet is how long the sources have to be still; MaxWait bounds it.
	Quiet, MaxWait time.Duration
	// MinInterval is the least time between two reloads.
	MinInterval time.Duration
	// MaxFailures is how many failed deliveries in a row are too many.
	MaxFailures int
	// StartGrace is how long an application that cannot be asked counts as
	// starting; after that it counts as failing.
	StartGrace time.Duration
	// RollBack puts the previous set back after too many.
	RollBack bool
	// Retry and MaxRetry are the first and the longest pause between tries.
	Retry, MaxRetry time.Duration
}

// Observation is everything that the next step depends on.
type Observation struct {
	Now time.Time
	// Begun is when the agent began to look at the sources.
	Begun    time.Time
	Timing   Timing
	Observed Observed
	State    State
	Child    ChildPhase
	// Checks and Confirms say whether these stages are configured.
	Checks, Confirms bool
}

// Decision is the next step.
type Decision struct {
	Verb       Verb
	Reason     Reason
	Generation string
	// Until is when to look again although nothing happened; zero means never.
	Until time.Time
}

// Decide says what comes next. It is the whole policy of the agent.
func Decide(in Observation) Decision {
	if in.Child == ChildExited {
		return in.afterChild()
	}
	if d, moving := in.towardsObserved(); moving {
		return d
	}
	if in.State.Published == "" {
		return Decision{Verb: Wait, Reason: in.holdReason()}
	}
	if in.Child == ChildPending {
		if at := in.Begun.Add(sourcePatience); in.Observed.Generation == "" && !in.Observed.Conflict && in.Now.Before(at) {
			return Decision{Verb: Wait, Reason: WaitingForSources, Until: at}
		}
		return in.startChild(ChildNotStarted)
	}
	return in.deliver()
}

// startChild starts the application on a set that this agent's own check has
// passed. One that an earlier run published, perhaps with another check or with
// none, is checked where it is.
func (in Observation) startChild(reason Reason) Decision {
	d := Decision{Verb: StartChild, Reason: reason, Generation: in.State.Published}
	if in.unchecked() {
		d.Verb = Check
	}
	return d
}

// unchecked says that this agent's own check has not passed the set in place.
func (in Observation) unchecked() bool { return in.Checks && in.State.Checked != in.State.Published }

// sourcePatience is how long an application that could run with the set of an
// earlier agent waits for the sources at the start.
const sourcePatience = 10 * time.Second

// reloadWindow is how soon after a reload the end of the application is put
// down to that reload, although the application had already taken it.
const reloadWindow = 10 * time.Second

// afterChild attributes the end of the application to the reload that was
// under way, if there was one and there is something to go back to. An agent
// that cannot go back ends with its child, as any other does.
func (in Observation) afterChild() Decision {
	s := in.State
	if in.reloading() && in.mayRollBack() && s.RollBackFailures < in.Timing.MaxFailures {
		if in.Now.Before(s.NextRollBack) {
			return Decision{Verb: Wait, Reason: RetryLater, Until: s.NextRollBack}
		}
		return Decision{Verb: RollBack, Reason: ChildStopped, Generation: s.Previous}
	}
	if s.Restarting {
		return in.startChild(ChildStopped)
	}
	return Decision{Verb: Exit, Reason: ChildStopped}
}

// reloading says that the application was told of the published set and has
// not shown yet that it took it, or has done so only a moment ago.
func (in Observation) reloading() bool {
	s := in.State
	told := s.Failures > 0 || s.Delivered == s.Published
	if told && !s.Settled(in.Confirms) {
		return true
	}
	return !s.LastNotify.IsZero() && in.Now.Sub(s.LastNotify) < reloadWindow
}

// towardsObserved moves the observed set as far as publishing. moving is false
// when there is nothing to move or it may not be moved now.
func (in Observation) towardsObserved() (d Decision, moving bool) {
	target := in.Observed.Generation
	if target == "" || in.Observed.Conflict || target == in.State.Barred || (target == in.State.Published && !in.putsBack()) {
		return Decision{}, false
	}
	if target == in.State.Rejected && in.Now.Before(in.State.NextCheck) {
		return in.whileRejected()
	}
	if at, reason := in.notBefore(); in.Now.Before(at) {
		return Decision{Verb: Wait, Reason: reason, Until: at}, true
	}
	d = Decision{Reason: Changed, Generation: target}
	if target == in.State.Published {
		d.Reason = Damaged
	}
	switch {
	case in.State.Staged != target:
		d.Verb = Stage
	case in.Checks && in.State.Checked != target:
		d.Verb = Check
	default:
		d.Verb = Publish
	}
	return d, true
}

// putsBack says that the published set is published once more, because readers find
// something else. A set that is being rolled back is not.
func (in Observation) putsBack() bool { return in.Observed.Damaged && in.State.RollBackFailures == 0 }

// whileRejected lets the published set be delivered further and looks at the
// refused one again later: a checker may fail for reasons that pass, such as a
// name that did not resolve.
func (in Observation) whileRejected() (Decision, bool) {
	if in.State.Published != "" && in.State.Settled(in.Confirms) && in.Child != ChildPending {
		return Decision{Verb: Wait, Reason: Rejected, Until: in.State.NextCheck}, true
	}
	if in.State.Published == "" {
		return Decision{Verb: Wait, Reason: Rejected, Until: in.State.NextCheck}, true
	}
	return Decision{}, false
}

// notBefore is when the observed set may move. The first one moves at once:
// no application reads yet, and the sources were read as a whole.
func (in Observation) notBefore() (time.Time, Reason) {
	if in.State.Published == "" {
		return time.Time{}, Changed
	}
	quiet := in.Observed.LastChange.Add(in.Timing.Quiet)
	first := in.Observed.FirstChange
	if limit := first.Add(in.Timing.MaxWait); !first.IsZero() && in.Timing.MaxWait > 0 && limit.Before(quiet) {
		quiet = limit
	}
	interval := in.State.LastNotify.Add(in.Timing.MinInterval)
	if in.State.LastNotify.IsZero() || interval.Before(quiet) {
		return quiet, WaitingForQuiet
	}
	return interval, TooSoon
}

func (in Observation) holdReason() Reason {
	if in.Observed.Conflict {
		return SourceConflict
	}
	return WaitingForSources
}

// deliver brings the application in step with the published set.
func (in Observation) deliver() Decision {
	s := in.State
	if s.Settled(in.Confirms) {
		return Decision{Verb: Wait, Reason: in.restReason()}
	}
	if in.Now.Before(s.NextTry) {
		return Decision{Verb: Wait, Reason: in.retryReason(), Until: s.NextTry}
	}
	if s.working() {
		return Decision{Verb: Confirm, Reason: NotConfirmed, Generation: s.Published}
	}
	if s.Failures >= in.Timing.MaxFailures && in.mayRollBack() {
		return Decision{Verb: RollBack, Reason: TooManyFailures, Generation: s.Previous}
	}
	if s.Delivered != s.Published {
		return Decision{Verb: Notify, Reason: NotDelivered, Generation: s.Published}
	}
	return Decision{Verb: Confirm, Reason: NotConfirmed, Generation: s.Published}
}

func (in Observation) retryReason() Reason {
	if in.State.Failures == 0 && !in.State.UnreachableSince.IsZero() {
		return Unreachable
	}
	return RetryLater
}

// mayRollBack is false after a roll-back: going back twice would bring a set
// back that the application refused.
func (in Observation) mayRollBack() bool {
	s := in.State
	return in.Timing.RollBack && s.Previous != "" && s.Previous != s.Published && s.Barred == ""
}

func (in Observation) restReason() Reason {
	switch {
	case in.Observed.Conflict:
		return SourceConflict
	case in.State.Barred != "" && in.State.Barred == in.Observed.Generation:
		return RolledBack
	case in.Observed.Generation == "":
		return WaitingForSources
	default:
		return InStep
	}
}
