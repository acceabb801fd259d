package podsync

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// StatusFile is the name of the status file beside the data.
const StatusFile = "status.json"

// Status is what people and other programs may know of an agent. It holds
// names and times, never contents; CheckOutput is what the checker printed, and
// Output what the last command that failed to tell or to ask printed.
type Status struct {
	State

	// Observed is what the sources hold, Rejected the set of them that the
	// checker refused.
	Observed string `json:"observed,omitempty"`
	Rejected string `json:"rejected,omitempty"`
	Reason   Reason `json:"reason"`
	// Message is the last failure in words.
	Message     string    `json:"message,omitempty"`
	CheckOutput string    `json:"checkOutput,omitempty"`
	Output      string    `json:"output,omitempty"`
	Healthy     bool      `json:"healthy"`
	Degraded    bool      `json:"degraded"`
	Updated     time.Time `json:"updated"`

	Sources []SourceStatus `json:"sources"`
}

// SourceStatus is one source in the status.
type SourceStatus struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Failure string `json:"failure,omitempty"`
}

// restore takes up what an earlier process left. The disk decides what is
// published; the file tells what the application knows of it.
func (a *Agent) restore() error {
	current, err := a.parts.Publisher.Current()
	if err != nil {
		return err
	}
	raw, err := a.parts.States.ReadState(StatusFile)
	if err != nil {
		return fmt.Errorf("read the status file: %w", err)
	}
	var old Status
	if len(raw) > 0 && json.Unmarshal(raw, &old) != nil {
		old = Status{} // damaged: as if nothing were known
	}
	a.state = old.resumed(current, a.parts.Confirmer != nil)
	if !a.parts.Publisher.Has(a.state.Previous) || a.parts.Publisher.Verify(a.state.Previous) != nil {
		a.state.Previous = ""
	}
	if by := a.checkName(); a.state.CheckedBy != by {
		a.state.Checked, a.state.CheckedBy = "", by
	}
	a.start.fresh = current == ""
	if a.opts.InitialNotify == NotifyAlways && a.parts.Child == nil {
		a.state.Delivered = ""
	}
	a.state.NextTry = time.Time{}
	a.files.pruneAt = a.parts.Now()
	return nil
}

// checkName is the check's command line as it may be written down: it may hold
// what the status file should not show.
func (a *Agent) checkName() string {
	if a.parts.Checker == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(a.parts.CheckName))
	return hex.EncodeToString(sum[:8])
}

// resumed is the state after a restart. When the disk is ahead of the file, the
// process was killed between a swap and writing it down. What the application
// looked like before it was told is forgotten, so that whoever was told and not
// confirmed is told again.
func (s State) resumed(current string, confirms bool) State {
	intended := s.Barred != "" && s.Barred == s.Published
	switch {
	case current == s.Published:
		if intended {
			s.Barred = "" // about to roll back, but not done
		}
	case intended && current == s.Previous:
		s = s.rolledBack(current)
	default:
		s = s.published(current, confirms)
	}
	if s.Unanswered != "" { // the connection is gone with the process: nobody waits on it
		s.Unanswered, s.Failures, s.Delivered = "", 0, ""
	}
	if !s.Settled(confirms) {
		s.Delivered = ""
	}
	return s
}

// report makes the state of things visible: status file, health and metrics.
func (a *Agent) report(d Decision) {
	a.told.mu.Lock()
	defer a.told.mu.Unlock()
	snap := a.planned.snapshot
	s := Status{
		State: a.state, Observed: a.planned.id, Rejected: a.state.Rejected, Reason: d.Reason,
		Message: a.told.status.Message, CheckOutput: a.told.status.CheckOutput, Output: a.told.status.Output,
		Sources: sourceStatuses(a.opts.Sources, snap),
	}
	if unusable := cmp.Or(a.planned.err, a.planned.tree.LeftOut); unusable != nil {
		s.Message = unusable.Error()
	}
	s.Healthy = !a.applicationFailed(s)
	s.Degraded = !s.Healthy || s.behind() || a.files.damaged || a.planned.err != nil || a.planned.tree.LeftOut != nil || snap.doubtful()
	if d.Reason == InStep && !s.Degraded {
		s.Message = ""
	}
	a.told.status, a.told.complete = s, snap.Complete()
	// On the way to publishing every file operation delays the change, and the
	// disk itself tells a restarted agent how far it got.
	if d.Verb != Stage && d.Verb != Publish {
		a.writeStatus()
	}
}

// behind says that the application does not run what is observed.
func (s State) behind() bool {
	return s.Barred != "" || s.Rejected != "" || !s.UnreachableSince.IsZero()
}

// doubtful says that the sources may hold something else than what is known of
// them, or that something is kept which they do not hold any more.
func (s Snapshot) doubtful() bool {
	return !s.Complete() || len(s.Failures) > 0 || len(s.Deleted) > 0
}

// statusRetry is how soon a status file that could not be written is tried again: a
// disk that has room again tells nobody.
const statusRetry = 5 * time.Second

// writeStatus writes the file when anything but its time changed.
func (a *Agent) writeStatus() {
	raw, err := json.Marshal(a.told.status)
	if err != nil || string(raw) == a.told.written {
		a.told.statusAt = time.Time{}
		return
	}
	written := string(raw)
	dated := a.told.status
	dated.Updated = a.parts.Now().UTC().Truncate(time.Second)
	if raw, err = json.MarshalIndent(dated, "", "  "); err == nil {
		err = a.parts.States.WriteState(StatusFile, append(raw, '\n'))
	}
	if err != nil {
		if a.told.statusAt.IsZero() {
			a.parts.Log.Warn("the status file cannot be written, which is tried again", "error", err)
		}
		a.told.statusAt = a.parts.Now().Add(statusRetry)
		return
	}
	a.told.written, a.told.statusAt = written, time.Time{}
}

func sourceStatuses(sources []Source, snap Snapshot) []SourceStatus {
	var all []SourceStatus
	for _, s := range sources {
		state := "read"
		switch {
		case slices.Contains(snap.Unread, s.Name):
			state = "unread"
		case slices.Contains(snap.Missing, s.Name):
			state = "missing"
		case slices.Contains(snap.Deleted, s.Name):
			state = "deleted, files kept"
		}
		all = append(all, SourceStatus{Name: s.Name, State: state, Failure: snap.Failures[s.Name]})
	}
	return all
}

func (a *Agent) setCheckOutput(output string) {
	a.told.mu.Lock()
	defer a.told.mu.Unlock()
	a.told.status.CheckOutput = output
}

// attempt is one label set of the attempts metric.
type attempt struct {
	stage  Verb
	result string
}

// reasonAfter is the reason that the status shows once a step has ended. What it
// was before the step would call a refused set merely changed.
func (a *Agent) reasonAfter(o Outcome) Reason {
	if o.Err != nil && a.state.Rejected == o.Decision.Generation {
		return Rejected
	}
	return Decide(a.input()).Reason
}

// record counts and logs the end of a step.
func (a *Agent) record(o Outcome) {
	a.told.mu.Lock()
	defer a.told.mu.Unlock()
	result := "ok"
	if o.Err != nil {
		result = "failed"
	}
	a.told.attempts[attempt{o.Decision.Verb, result}]++
	a.keepOutput(o)
	if o.Err != nil {
		a.told.status.Message = o.Err.Error()
	}
	a.log(o)
}

// keepOutput has the status show what a failing command printed, until one like
// it succeeds or something newer is told.
func (a *Agent) keepOutput(o Outcome) {
	failed, printed := errors.AsType[*OutputError](o.Err)
	switch {
	case o.Decision.Verb == Check:
		// The check has a place of its own, and shows what it printed also when it
		// has passed.
	case printed:
		a.told.status.Output = failed.Output
	case o.Decision.Verb == Publish, o.Decision.Verb == RollBack:
		a.told.status.Output = ""
	case o.Err == nil && (o.Decision.Verb == Confirm || o.Decision.Verb == Notify && a.parts.Confirmer == nil):
		a.told.status.Output = ""
	}
}
