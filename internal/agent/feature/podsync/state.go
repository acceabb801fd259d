package podsync

import (
	"errors"
	"math"
	"time"
)

// State is what the agent knows about its own deeds. The exported fields with
// JSON names survive a restart; the others begin anew.
type State struct {
	Sets
	Answers
	// Barred is the set that was rolled back; it is left alone until the
	// sources hold something else.
	Barred string `json:"barred,omitempty"`
	Checks
	Tries

	// RollBackFailures counts tries to put the previous set back that failed.
	RollBackFailures int       `json:"-"`
	NextRollBack     time.Time `json:"-"`

	// Restarting is true when the application ended and is to be started with
	// the set that was put back.
	Restarting bool `json:"-"`
}

// Sets are the sets of files on the disk.
type Sets struct {
	// Published is what readers see, Previous the last set that was good.
	Published string `json:"published"`
	Previous  string `json:"previous,omitempty"`
	// Files and Bytes are the size of the published set; the previous one's is
	// kept because the agent does not read a set again that is put back.
	Files         int   `json:"files"`
	Bytes         int64 `json:"bytes"`
	PreviousFiles int   `json:"previousFiles,omitempty"`
	PreviousBytes int64 `json:"previousBytes,omitempty"`
}

// Answers are what the application was told, and what it has answered.
type Answers struct {
	// Delivered is the set that the application was told of, Confirmed the one
	// that it has shown to run.
	Delivered string `json:"delivered,omitempty"`
	Confirmed string `json:"confirmed,omitempty"`
	// Unanswered is a set that the application was told of and has not answered
	// about, so that it may still be at work.
	Unanswered string `json:"unanswered,omitempty"`
	// Initial is a set that the application read when it started, so that it
	// was neither told nor asked.
	Initial string `json:"initial,omitempty"`
}

// Checks are the sets on their way to be published.
type Checks struct {
	// Checked is the last set that passed the check; CheckedBy tells the checks of
	// two command lines apart.
	Checked   string `json:"checked,omitempty"`
	CheckedBy string `json:"checkedBy,omitempty"`

	Staged     string    `json:"-"`
	Rejected   string    `json:"-"`
	NextCheck  time.Time `json:"-"`
	Rejections int       `json:"-"`
}

// Tries are the attempts to deliver the published set.
type Tries struct {
	// Failures are those in a row; Waits is how many of them only were waits for
	// an answer.
	Failures   int       `json:"failures,omitempty"`
	Waits      int       `json:"-"`
	NextTry    time.Time `json:"-"`
	LastNotify time.Time `json:"lastNotify,omitzero"`

	// UnreachableSince is since when the application cannot be asked; Unreached
	// is how often that was not counted as a failure.
	UnreachableSince time.Time `json:"-"`
	Unreached        int       `json:"-"`
}

// Settled says that the application needs nothing more for the published set.
func (s State) Settled(confirms bool) bool {
	if s.Delivered != s.Published || s.working() {
		return false
	}
	return !confirms || s.Confirmed == s.Published || s.Initial == s.Published
}

// working says that the application was told of the published set and may still
// be at work on it: it is not told again, and nothing is rolled back meanwhile.
func (s State) working() bool { return s.Unanswered != "" && s.Unanswered == s.Published }

// Outcome is how a step ended.
type Outcome struct {
	Decision Decision
	Err      error
	Now      time.Time
	// Acknowledged is true when telling the application was itself an answer:
	// an accepted HTTP code or a command's success, not a signal.
	Acknowledged bool
	// Asks is true when a question follows that tells by itself, while the
	// application is at work, whether it took the set.
	Asks bool
	// Unread is true for the first set of a new volume: the application reads
	// it when it starts and need not be told.
	Unread bool
	// Files and Bytes are the size of a set that was published.
	Files int
	Bytes int64
	// Jitter between 0 and 1 spreads retries.
	Jitter float64
}

// After is the state once a step has ended.
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
		// An application that has just started has read these very files.
		s.Delivered, s.Initial, s.Unanswered, s.Restarting = id, id, "", false
		s.UnreachableSince, s.Unreached = time.Time{}, 0
		s = s.succeeded()
	case Wait, Exit:
	}
	return s
}

// notified takes an earlier confirmation of the same set back: only an answer
// after this notification counts.
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

// published remembers the set before as the one to go back to, if the
// application is known to have taken it.
func (s State) published(id string, confirms bool) State {
	if s.Published != "" && s.Published != id && s.Settled(confirms) {
		s.Previous, s.PreviousFiles, s.PreviousBytes = s.Published, s.Files, s.Bytes
	}
	s.Files, s.Bytes = 0, 0 // whoever knows the set says so
	s.Published, s.Delivered, s.Unanswered, s.Initial, s.Barred, s.Rejected = id, "", "", "", "", ""
	return s.succeeded()
}

// rolledBack bars the published set and has the one before in its place.
func (s State) rolledBack(id string) State {
	s.Barred, s.Published, s.Delivered, s.Unanswered, s.Initial = s.Published, id, "", "", ""
	s.Files, s.Bytes = s.PreviousFiles, s.PreviousBytes
	return s
}

// observing forgets what is held against sets that the sources do not hold any
// more: who goes back to an older content and comes again gets a new chance.
// While the application has not taken the set that was put back the bar stays,
// because it is what keeps health bad until then.
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
		// A full disk or a foreign file is not the application's fault: the
		// observed set waits like a refused one and is tried again.
		s.Rejected, s.Rejections = o.Decision.Generation, s.Rejections+1
		s.NextCheck = o.Now.Add(t.pause(s.Rejections, o.Jitter))
	case Notify, Confirm:
		if late, ok := errors.AsType[*UnansweredError](o.Err); ok {
			return s.unanswered(o, t, late)
		}
		worked := s.working()
		if _, yes := errors.AsType[*AnsweredError](o.Err); yes {
			s.Failures -= s.Waits // it was slow, no more
		}
		s.Unanswered, s.Waits = "", 0
		s = s.heardOf(o)
		if s.starting(o, t) {
			return s.unreached(o, t)
		}
		s.Failures, s.Delivered = s.Failures+1, ""
		s.NextTry = o.Now.Add(t.pause(s.Failures, o.Jitter))
		if t.RollBack && (s.Failures == t.MaxFailures || worked && s.Failures > t.MaxFailures) {
			s.NextTry = o.Now // the roll-back, if there is one, need not wait
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

// unanswered takes note of an application that was told and is still at work.
// Each wait counts towards --max-failures, so that one that hangs turns health
// red in the time that refusals would; before a question that tells by itself
// only the question counts. After a late yes they do not count any more. The pause between two waits is short, because nothing
// is sent after it.
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

// heardOf takes note of an application that cannot be asked, or of its answer.
func (s State) heardOf(o Outcome) State {
	switch _, unreachable := errors.AsType[*UnreachableError](o.Err); {
	case !unreachable:
		s.UnreachableSince, s.Unreached = time.Time{}, 0
	case s.UnreachableSince.IsZero():
		s.UnreachableSince = o.Now
	}
	return s
}

// Away says that the application could not be asked the last time and may still
// be starting.
func (s State) Away(now time.Time, t Timing) bool {
	return !s.UnreachableSince.IsZero() && now.Sub(s.UnreachableSince) < t.StartGrace
}

// starting says that a failure is not held against the published set: the
// application is away and was never told of this set. One that was told and is
// gone afterwards has shown something.
func (s State) starting(o Outcome, t Timing) bool {
	return s.Failures == 0 && s.Away(o.Now, t)
}

func (s State) unreached(o Outcome, t Timing) State {
	s.Unreached++
	s.NextTry = o.Now.Add(t.pause(s.Unreached, o.Jitter))
	return s
}

// pause doubles with every failure: 0.5 s, 1 s, 2 s … up to the limit, and is
// shortened by up to a half so that replicas do not retry in step.
func (t Timing) pause(failures int, jitter float64) time.Duration {
	pause := float64(t.Retry) * math.Pow(2, float64(min(failures, 30)-1))
	pause = min(pause, float64(t.MaxRetry))
	return time.Duration(pause * (1 - jitter/2))
}
