package podsync

import (
	"errors"
	"math"
	"time"
)

// State is the agent's record of its own actions. The exported fields with JSON names
// survive a restart; the others start empty.
type State struct {
	Sets
	Answers
	// Barred is the set that was rolled back. The agent ignores it until the sources change.
	Barred string `json:"barred,omitempty"`
	Checks
	Tries

	// RollBackFailures counts failed attempts to restore the previous set.
	RollBackFailures int       `json:"-"`
	NextRollBack     time.Time `json:"-"`

	// Restarting is true when the application ended and has to be started with the restored set.
	Restarting bool `json:"-"`
}

// Sets are the sets of files on the disk.
type Sets struct {
	// Published is the set that readers see, Previous the last good set.
	Published string `json:"published"`
	Previous  string `json:"previous,omitempty"`
	// Files and Bytes are the size of the published set. The previous set's size is kept because
	// a roll-back doesn't read that set again.
	Files         int   `json:"files"`
	Bytes         int64 `json:"bytes"`
	PreviousFiles int   `json:"previousFiles,omitempty"`
	PreviousBytes int64 `json:"previousBytes,omitempty"`
}

// Answers are the sets that the application was notified of, and its answers.
type Answers struct {
	// Delivered is the set that the application was notified of, Confirmed the one that it was
	// shown to run.
	Delivered string `json:"delivered,omitempty"`
	Confirmed string `json:"confirmed,omitempty"`
	// Unanswered is a set that the application was notified of and has not answered about. It
	// may still be working on it.
	Unanswered string `json:"unanswered,omitempty"`
	// Initial is a set that the application read when it started, so the agent neither notified
	// nor queried it.
	Initial string `json:"initial,omitempty"`
}

// Checks are the check results of sets that are about to be published.
type Checks struct {
	// Checked is the last set that passed the check; CheckedBy distinguishes the checks of two
	// command lines.
	Checked   string `json:"checked,omitempty"`
	CheckedBy string `json:"checkedBy,omitempty"`

	Staged     string    `json:"-"`
	Rejected   string    `json:"-"`
	NextCheck  time.Time `json:"-"`
	Rejections int       `json:"-"`
}

// Tries are the attempts to deliver the published set.
type Tries struct {
	// Failures counts consecutive failures; Waits is how many of them were only waits for an
	// answer.
	Failures   int       `json:"failures,omitempty"`
	Waits      int       `json:"-"`
	NextTry    time.Time `json:"-"`
	LastNotify time.Time `json:"lastNotify,omitzero"`

	// UnreachableSince is since when the application can't be queried; Unreached is how often
	// that did not count as a failure.
	UnreachableSince time.Time `json:"-"`
	Unreached        int       `json:"-"`
}

// Settled reports that the published set needs no further notification or confirmation.
func (s State) Settled(confirms bool) bool {
	if s.Delivered != s.Published || s.working() {
		return false
	}
	return !confirms || s.Confirmed == s.Published || s.Initial == s.Published
}

// working reports that the application was notified of the published set and may still be
// working on it. Until it answers, the agent neither notifies it again nor rolls back.
func (s State) working() bool { return s.Unanswered != "" && s.Unanswered == s.Published }

// Outcome is how a step ended.
type Outcome struct {
	Decision Decision
	Err      error
	Now      time.Time
	// Acknowledged is true when the notification itself was answered: with an accepted HTTP code
	// or by a command's success. A signal isn't answered.
	Acknowledged bool
	// Asks is true when a query follows that shows by itself, while the application is working,
	// whether it loaded the set.
	Asks bool
	// Unread is true for the first set of a new volume: the application reads it when it starts,
	// so the agent doesn't notify it.
	Unread bool
	// Files and Bytes are the size of a set that was published.
	Files int
	Bytes int64
	// Jitter between 0 and 1 spreads retries.
	Jitter float64
}

// After is the state after a step.
func (s State) After(o Outcome, t Timing, confirms bool) State {
	if o.Err != nil {
		return s.afterFailure(o, t)
	}
	id := o.Decision.Generation
	switch o.Decision.Verb {
	case Stage:
		s.Staged = id
	case Check:
		s.Checked = id
		if s.Rejected == id {
			s.Rejected, s.Rejections = "", 0
		}
	case Publish:
		s = s.published(id, confirms)
		s.Files, s.Bytes = o.Files, o.Bytes
		if o.Unread {
			s.Delivered, s.Initial = id, id
		}
	case Notify:
		s = s.notified(o, confirms)
	case Confirm:
		if confirms || o.Acknowledged {
			s.Confirmed = id
		}
		s.Unanswered = ""
		s = s.succeeded()
	case RollBack:
		s = s.rolledBack(id).succeeded()
		s.Restarting = o.Decision.Reason == ChildStopped
	case StartChild:
		// An application that has just started has read these files.
		s.Delivered, s.Initial, s.Unanswered, s.Restarting = id, id, "", false
		s.UnreachableSince, s.Unreached = time.Time{}, 0
		s = s.succeeded()
	case Wait, Exit:
	}
	return s
}

// notified revokes an earlier confirmation of the same set: only an answer after this
// notification counts.
func (s State) notified(o Outcome, confirms bool) State {
	id := o.Decision.Generation
	s.Delivered, s.LastNotify, s.Initial, s.Unanswered = id, o.Now, "", ""
	s.UnreachableSince, s.Unreached = time.Time{}, 0
	if confirms {
		if s.Confirmed == id {
			s.Confirmed = ""
		}
		return s
	}
	if o.Acknowledged {
		s.Confirmed = id
	}
	s.Failures, s.Waits, s.NextTry = 0, 0, time.Time{}
	return s
}

func (s State) succeeded() State {
	s.Failures, s.Waits, s.NextTry = 0, 0, time.Time{}
	s.RollBackFailures, s.NextRollBack = 0, time.Time{}
	return s
}

// published records the previous set as the one to roll back to, if the application is known
// to have loaded it.
func (s State) published(id string, confirms bool) State {
	if s.Published != "" && s.Published != id && s.Settled(confirms) {
		s.Previous, s.PreviousFiles, s.PreviousBytes = s.Published, s.Files, s.Bytes
	}
	s.Files, s.Bytes = 0, 0 // the caller sets them when it knows the set
	s.Published, s.Delivered, s.Unanswered, s.Initial, s.Barred, s.Rejected = id, "", "", "", "", ""
	return s.succeeded()
}

// rolledBack bars the published set and replaces it with the previous one.
func (s State) rolledBack(id string) State {
	s.Barred, s.Published, s.Delivered, s.Unanswered, s.Initial = s.Published, id, "", "", ""
	s.Files, s.Bytes = s.PreviousFiles, s.PreviousBytes
	return s
}

// observing forgets refusals of sets that the sources do not hold any more: a user who
// restores an older content and then applies the refused one again gets another attempt. The
// bar stays until the application has loaded the restored set, because the bar keeps health
// bad until then.
func (s State) observing(id string, confirms bool) State {
	if id == "" {
		return s
	}
	if id != s.Rejected {
		s.Rejected, s.Rejections, s.NextCheck = "", 0, time.Time{}
	}
	if id != s.Barred && s.Settled(confirms) {
		s.Barred = ""
	}
	return s
}

func (s State) afterFailure(o Outcome, t Timing) State {
	switch o.Decision.Verb {
	case Check, Stage, Publish:
		// A full disk or another program's file is not the application's fault: the observed set
		// waits like a refused one and is tried again.
		s.Rejected, s.Rejections = o.Decision.Generation, s.Rejections+1
		s.NextCheck = o.Now.Add(t.pause(s.Rejections, o.Jitter))
	case Notify, Confirm:
		if late, ok := errors.AsType[*UnansweredError](o.Err); ok {
			return s.unanswered(o, t, late)
		}
		worked := s.working()
		if _, yes := errors.AsType[*AnsweredError](o.Err); yes {
			s.Failures -= s.Waits // it was only slow
		}
		s.Unanswered, s.Waits = "", 0
		s = s.heardOf(o)
		if s.starting(o, t) {
			return s.unreached(o, t)
		}
		s.Failures, s.Delivered = s.Failures+1, ""
		s.NextTry = o.Now.Add(t.pause(s.Failures, o.Jitter))
		if t.RollBack && (s.Failures == t.MaxFailures || worked && s.Failures > t.MaxFailures) {
			s.NextTry = o.Now // a roll-back doesn't wait
		}
		if o.Decision.Verb == Notify {
			s.LastNotify = o.Now
		}
	case RollBack:
		s.Barred, s.RollBackFailures = "", s.RollBackFailures+1
		s.NextRollBack = o.Now.Add(t.pause(s.RollBackFailures, o.Jitter))
		s.NextTry = s.NextRollBack
	case StartChild, Wait, Exit:
	}
	return s
}

// unanswered records that the application was notified and is still working. Each wait counts
// towards --max-failures, so an application that hangs fails its health check as soon as one that
// refuses. If a query follows that shows the result by itself, only the query counts. After a late
// yes the waits don't count any more. The pause between two waits is short, because the agent
// doesn't send anything after it.
func (s State) unanswered(o Outcome, t Timing, late *UnansweredError) State {
	id := o.Decision.Generation
	s.Delivered, s.Unanswered, s.Initial = id, id, ""
	s.UnreachableSince, s.Unreached = time.Time{}, 0
	if o.Decision.Verb == Notify {
		s.LastNotify, s.NextTry = o.Now, o.Now
		if s.Confirmed == id {
			s.Confirmed = ""
		}
		if o.Asks {
			return s
		}
	}
	s.Failures, s.Waits = s.Failures+1, s.Waits+1
	s.NextTry = o.Now.Add(min(t.Retry, late.Patience))
	return s
}

// heardOf records whether the application could be queried.
func (s State) heardOf(o Outcome) State {
	switch _, unreachable := errors.AsType[*UnreachableError](o.Err); {
	case !unreachable:
		s.UnreachableSince, s.Unreached = time.Time{}, 0
	case s.UnreachableSince.IsZero():
		s.UnreachableSince = o.Now
	}
	return s
}

// Away reports that the last query did not reach the application, which may still be
// starting.
func (s State) Away(now time.Time, t Timing) bool {
	return !s.UnreachableSince.IsZero() && now.Sub(s.UnreachableSince) < t.StartGrace
}

// starting reports that a failure doesn't count against the published set: the application
// can't be reached and was never notified of this set. If it disappears after a
// notification, that counts.
func (s State) starting(o Outcome, t Timing) bool {
	return s.Failures == 0 && s.Away(o.Now, t)
}

func (s State) unreached(o Outcome, t Timing) State {
	s.Unreached++
	s.NextTry = o.Now.Add(t.pause(s.Unreached, o.Jitter))
	return s
}

// pause doubles with every failure: 0.5 s, 1 s, 2 s … up to the limit, and is shortened by
// up to a half so replicas don't retry at the same time.
func (t Timing) pause(failures int, jitter float64) time.Duration {
	pause := float64(t.Retry) * math.Pow(2, float64(min(failures, 30)-1))
	pause = min(pause, float64(t.MaxRetry))
	return time.Duration(pause * (1 - jitter/2))
}
