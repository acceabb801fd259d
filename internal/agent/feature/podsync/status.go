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

// StatusFile is the name of the status file next to the data.
const StatusFile = "status.json"

// Status is an agent's public state, for users and other programs. It holds names and times,
// never contents. CheckOutput is the checker's output, and Output that of the last
// notification or confirmation command that failed.
type Status struct {
	State

	// Observed is the set that the sources hold, Rejected the one that the checker refused.
	Observed string `json:"observed,omitempty"`
	Rejected string `json:"rejected,omitempty"`
	Reason   Reason `json:"reason"`
	// Message is the text of the last failure.
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

// restore loads the state of an earlier process. The disk decides which set is published;
// the file records what the application has loaded.
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
		old = Status{} // damaged: start with an empty status
	}
	if err := a.recall(); err != nil {
		return err
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

// checkName identifies the check's command line without showing it, because the command line
// may contain secrets.
func (a *Agent) checkName() string {
	if a.parts.Checker == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(a.parts.CheckName))
	return hex.EncodeToString(sum[:8])
}

// resumed is the state after a restart. If the disk is ahead of the file, the process was
// killed between the swap and the write. The baseline is lost with the process, so the agent
// notifies an application again that was notified and has not confirmed.
func (s State) resumed(current string, confirms bool) State {
	intended := s.Barred != "" && s.Barred == s.Published
	switch {
	case current == s.Published:
		if intended {
			s.Barred = "" // the roll-back was planned, but not done
		}
	case intended && current == s.Previous:
		s = s.rolledBack(current)
	default:
		s = s.published(current, confirms)
	}
	if s.Unanswered != "" { // the connection ended with the process
		s.Unanswered, s.Failures, s.Delivered = "", 0, ""
	}
	if !s.Settled(confirms) {
		s.Delivered = ""
	}
	return s
}

// report updates the status file, health and metrics.
func (a *Agent) report(d Decision) {
	a.reported.mu.Lock()
	defer a.reported.mu.Unlock()
	snap := a.planned.snapshot
	s := Status{
		State: a.state, Observed: a.planned.id, Rejected: a.state.Rejected, Reason: d.Reason,
		Message: a.reported.status.Message, CheckOutput: a.reported.status.CheckOutput, Output: a.reported.status.Output,
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
	a.reported.status, a.reported.complete = s, snap.Complete()
	// Every file operation before publishing delays the change, and a restarted agent can tell
	// from the disk how far this one got.
	if d.Verb != Stage && d.Verb != Publish {
		a.writeStatus()
	}
}

// behind reports that the application doesn't run the observed set.
func (s State) behind() bool {
	return s.Barred != "" || s.Rejected != "" || !s.UnreachableSince.IsZero()
}

// doubtful reports that the sources may have changed without the agent knowing, or that the
// agent keeps files which the sources do not hold any more.
func (s Snapshot) doubtful() bool {
	return !s.Complete() || len(s.Failures) > 0 || len(s.Deleted) > 0
}

// statusRetry is how soon to retry a failed write of the status file. No event reports that
// the disk has room again.
const statusRetry = 5 * time.Second

// writeStatus writes the file when anything except its time changed.
func (a *Agent) writeStatus() {
	raw, err := json.Marshal(a.reported.status)
	if err != nil || string(raw) == a.reported.written {
		a.reported.statusAt = time.Time{}
		return
	}
	written := string(raw)
	dated := a.reported.status
	dated.Updated = a.parts.Now().UTC().Truncate(time.Second)
	if raw, err = json.MarshalIndent(dated, "", "  "); err == nil {
		err = a.parts.States.WriteState(StatusFile, append(raw, '\n'))
	}
	if err != nil {
		if a.reported.statusAt.IsZero() {
			a.parts.Log.Warn("cannot write the status file, trying again", "error", err)
		}
		a.reported.statusAt = a.parts.Now().Add(statusRetry)
		return
	}
	a.reported.written, a.reported.statusAt = written, time.Time{}
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
	a.reported.mu.Lock()
	defer a.reported.mu.Unlock()
	a.reported.status.CheckOutput = output
}

// attempt is one label set of the attempts metric.
type attempt struct {
	stage  Verb
	result string
}

// reasonAfter is the reason that the status shows after a step. The reason from before the
// step would be Changed for a refused set.
func (a *Agent) reasonAfter(o Outcome) Reason {
	if o.Err != nil && a.state.Rejected == o.Decision.Generation {
		return Rejected
	}
	return Decide(a.input()).Reason
}

// record counts and logs the end of a step.
func (a *Agent) record(o Outcome) {
	a.reported.mu.Lock()
	defer a.reported.mu.Unlock()
	result := "ok"
	if o.Err != nil {
		result = "failed"
	}
	a.reported.attempts[attempt{o.Decision.Verb, result}]++
	a.keepOutput(o)
	if o.Err != nil {
		a.reported.status.Message = o.Err.Error()
	}
	a.log(o)
}

// keepOutput shows a failing command's output in the status, until the same kind of command
// succeeds or a newer set is published.
func (a *Agent) keepOutput(o Outcome) {
	failed, printed := errors.AsType[*OutputError](o.Err)
	switch {
	case o.Decision.Verb == Check:
		// The check has its own field, and shows its output even when it passed.
	case printed:
		a.reported.status.Output = failed.Output
	case o.Decision.Verb == Publish, o.Decision.Verb == RollBack:
		a.reported.status.Output = ""
	case o.Err == nil && (o.Decision.Verb == Confirm || o.Decision.Verb == Notify && a.parts.Confirmer == nil):
		a.reported.status.Output = ""
	}
}
