package podsync

import (
	"cmp"
	"time"
)

// Verb is the next step.
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

// Reason explains a decision. The log, the status file, the metrics and the documentation
// use the same word.
type Reason string

// The reasons.
const (
	// WaitingForSources: not every source has been read yet.
	WaitingForSources Reason = "WaitingForSources"
	// SourceConflict: the sources can't be merged into one set of files; the published set
	// stays.
	SourceConflict Reason = "SourceConflict"
	// SetTooLarge: the sources exceed the size limit; the published set stays.
	SetTooLarge Reason = "SetTooLarge"
	// Changed: the sources hold a set that isn't published.
	Changed Reason = "Changed"
	// Damaged: the published files differ from the set that was published, because another
	// program changed them or a publish failed half-way; the agent restores them.
	Damaged Reason = "Damaged"
	// WaitingForQuiet: more changes may follow.
	WaitingForQuiet Reason = "WaitingForQuiet"
	// TooSoon: the last reload is less than the minimum interval ago.
	TooSoon Reason = "TooSoon"
	// Rejected: the checker refused the observed set; the agent checks it again later.
	Rejected Reason = "Rejected"
	// NotDelivered: the application has not been notified of the published set.
	NotDelivered Reason = "NotDelivered"
	// NotConfirmed: the application was notified and has not confirmed the set.
	NotConfirmed Reason = "NotConfirmed"
	// Unreachable: the application can't be queried, perhaps because it is starting; the agent
	// tries again.
	Unreachable Reason = "Unreachable"
	// RetryLater: the notification failed; the agent tries again after a pause.
	RetryLater Reason = "RetryLater"
	// TooManyFailures: the notification failed as often as allowed.
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

// Observed is the set that the sources hold.
type Observed struct {
	// Generation names the set; empty until every source was read.
	Generation string
	// FirstChange and LastChange bound the burst that led to it.
	FirstChange, LastChange time.Time
	// Refused is why the sources can't become a set: SourceConflict or SetTooLarge. It is empty
	// when they can.
	Refused Reason
	// Damaged is true when the sources hold the published set but readers find different files.
	Damaged bool
}

// ChildPhase is the phase of the application in subprocess mode.
type ChildPhase int

// The phases of a child.
const (
	NoChild ChildPhase = iota
	ChildPending
	ChildRunning
	ChildExited
)

// Timing is the part of the options that decisions depend on.
type Timing struct {
	// Quiet is how long the sources must stay unchanged; MaxWait bounds it.
	Quiet, MaxWait time.Duration
	// MinInterval is the minimum time between two reloads.
	MinInterval time.Duration
	// MaxFailures is how many failed deliveries in a row are too many.
	MaxFailures int
	// StartGrace is how long an application that can't be queried counts as starting; after that
	// it counts as failing.
	StartGrace time.Duration
	// RollBack restores the previous set after MaxFailures failures.
	RollBack bool
	// Retry and MaxRetry are the first and the longest pause between tries.
	Retry, MaxRetry time.Duration
}

// Observation is everything that a decision depends on.
type Observation struct {
	Now time.Time
	// Begun is when the agent started to read the sources.
	Begun    time.Time
	Timing   Timing
	Observed Observed
	State    State
	Child    ChildPhase
	// Checks and Confirms report whether these stages are configured.
	Checks, Confirms bool
}

// Decision is the next step.
type Decision struct {
	Verb       Verb
	Reason     Reason
	Generation string
	// Until is when to decide again if nothing happens before; zero means never.
	Until time.Time
}

// Decide chooses the next step. It is the agent's whole policy.
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
	if at := in.Begun.Add(sourcePatience); in.Observed.Generation == "" && in.Observed.Refused == "" && in.Now.Before(at) {
		return Decision{Verb: Wait, Reason: WaitingForSources, Until: at}
	}
	if in.Child == ChildPending {
		return in.startChild(ChildNotStarted)
	}
	return in.deliver()
}

// startChild starts the application on a set that passed this agent's own check. A set that
// an earlier run published, perhaps with a different check or without one, is checked in
// place.
func (in Observation) startChild(reason Reason) Decision {
	d := Decision{Verb: StartChild, Reason: reason, Generation: in.State.Published}
	if in.unchecked() {
		d.Verb = Check
	}
	return d
}

// unchecked reports that the set in place has not passed this agent's own check.
func (in Observation) unchecked() bool { return in.Checks && in.State.Checked != in.State.Published }

// sourcePatience is how long the agent waits for the sources at the start before it starts the
// application with an earlier agent's set, or notifies it of that set. Otherwise the application
// would load the old set first, and the new one only after the minimum interval.
const sourcePatience = 10 * time.Second

// reloadWindow is how soon after a reload the agent blames the reload when the application
// ends, even if the application had already confirmed it.
const reloadWindow = 10 * time.Second

// afterChild blames the reload in progress, if any, when the application ends, and rolls
// back if there is a previous set. An agent that can't roll back exits with its child.
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

// reloading reports that the application was notified of the published set and has not
// confirmed it yet, or confirmed it only a moment ago.
func (in Observation) reloading() bool {
	s := in.State
	told := s.Failures > 0 || s.Delivered == s.Published
	if told && !s.Settled(in.Confirms) {
		return true
	}
	return !s.LastNotify.IsZero() && in.Now.Sub(s.LastNotify) < reloadWindow
}

// towardsObserved moves the observed set towards publishing. moving is false when there is
// nothing to publish or it may not be published now.
func (in Observation) towardsObserved() (d Decision, moving bool) {
	target := in.Observed.Generation
	if target == "" || in.Observed.Refused != "" || target == in.State.Barred || (target == in.State.Published && !in.putsBack()) {
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

// putsBack reports that the published set is published again, because readers find different
// files. A set that is being rolled back is not.
func (in Observation) putsBack() bool { return in.Observed.Damaged && in.State.RollBackFailures == 0 }

// whileRejected continues to deliver the published set and checks the refused set again
// later. A checker may fail for a temporary reason, such as a name that did not resolve.
func (in Observation) whileRejected() (Decision, bool) {
	if in.State.Published != "" && in.State.Settled(in.Confirms) && in.Child != ChildPending {
		return Decision{Verb: Wait, Reason: Rejected, Until: in.State.NextCheck}, true
	}
	if in.State.Published == "" {
		return Decision{Verb: Wait, Reason: Rejected, Until: in.State.NextCheck}, true
	}
	return Decision{}, false
}

// notBefore is when the observed set may be published. The first set is published at once:
// no application reads the files yet, and the sources were read completely.
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
	return cmp.Or(in.Observed.Refused, WaitingForSources)
}

// deliver brings the application in line with the published set.
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

// mayRollBack is false after a roll-back: a second one would restore a set that the
// application refused.
func (in Observation) mayRollBack() bool {
	s := in.State
	return in.Timing.RollBack && s.Previous != "" && s.Previous != s.Published && s.Barred == ""
}

func (in Observation) restReason() Reason {
	switch {
	case in.Observed.Refused != "":
		return in.Observed.Refused
	case in.State.Barred != "" && in.State.Barred == in.Observed.Generation:
		return RolledBack
	case in.Observed.Generation == "":
		return WaitingForSources
	default:
		return InStep
	}
}
