package follow

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Verb is what is done to a workload.
type Verb string

// The verbs.
const (
	// Ignore: the workload is not followed; nothing of it is remembered.
	Ignore Verb = "ignore"
	// Leave: there is nothing to do.
	Leave Verb = "leave"
	// Remember: only the record changes.
	Remember Verb = "remember"
	// Wait: a change is due, and it is not yet time.
	Wait Verb = "wait"
	// Hold: a change is due, and something forbids it.
	Hold Verb = "hold"
	// Move: the pod template is moved to the current versions.
	Move Verb = "move"
	// Evict: pods that are older than the change are evicted, one at a time.
	Evict Verb = "evict"
	// Refresh: the pods are touched so that the kubelets refresh their files.
	Refresh Verb = "refresh"
	// Observe: it would be moved, and somebody asked only to be told.
	Observe Verb = "observe"
)

// maxSources bounds what is remembered of one workload and shown in its template.
// A ConfigMap of the record holds 1 MiB for many workloads, and one that is too large
// is refused as a whole. One that asks for more must not harm them.
const maxSources = 256

// maxNames bounds the names of those sources together. Nobody checks the names in a
// pod template, so that a single one could fill the object.
const maxNames = 16 << 10

// Input is everything that a decision depends on.
type Input struct {
	Intent   settings.Intent
	Findings []input.Finding
	// ReadsByItself is true for a workload whose next pods read the new content
	// without being asked: a CronJob.
	ReadsByItself bool
	// NoTemplate says why the object has no pod template, empty when it has one.
	NoTemplate string
	// PodsAllowed is true when the strategies that work on pods are switched on.
	PodsAllowed bool
	// Entry is what is on record.
	Entry record.Entry
	// MaxDelay bounds the quiet window, counted from the first pending change.
	MaxDelay time.Duration
	Now      time.Time
}

// Decision is what to do with a workload, and why.
type Decision struct {
	Verb   Verb
	Reason input.Reason
	// Message is one line for people, the same for the same situation.
	Message string
	// Moves are the inputs that are due.
	Moves []input.Finding
	// Delivered is true when they count as given once the decision is carried out.
	Delivered bool
	// PendingSince is when the oldest undelivered change was first seen.
	PendingSince time.Time
	// Recheck is when to look again, zero when only an event can change anything.
	Recheck time.Duration
}

// Decide says what has to happen to a workload now.
func Decide(in Input) Decision {
	if len(in.Intent.Problems) > 0 {
		return Decision{Verb: Leave, Reason: input.InvalidAnnotation, Message: problems(in.Intent), PendingSince: in.Entry.PendingSince}
	}
	if in.NoTemplate != "" && in.asksToBeFollowed() {
		return Decision{Verb: Leave, Reason: input.NoTemplate, Message: in.NoTemplate, PendingSince: in.Entry.PendingSince}
	}
	if excess := in.excess(); excess != "" {
		return Decision{Verb: Leave, Reason: input.TooManySources, Message: excess, PendingSince: in.Entry.PendingSince}
	}
	if len(in.Findings) == 0 {
		return Decision{Verb: Ignore, Reason: input.NotFollowed, Message: "nothing to follow"}
	}
	due := withStanding(in.Findings, input.Due)
	if len(due) == 0 {
		return settled(in)
	}
	return in.decideDue(Decision{Moves: due, Message: changes(due), PendingSince: in.pendingSince()})
}

// pendingSince is when the oldest change that is due was first seen. A time to come
// was written by a process whose clock is ahead of ours.
func (in Input) pendingSince() time.Time {
	if p := in.Entry.PendingSince; !p.IsZero() && !p.After(in.Now) {
		return p
	}
	return in.Now
}

// stillDue is a decision that could not be carried out.
func (in Input) stillDue(d Decision) Decision {
	d.PendingSince, d.Delivered = in.pendingSince(), false
	return d
}

// excess says in which way the workload asks for too much, empty when it does not.
func (in Input) excess() string {
	if len(in.Findings) > maxSources {
		return fmt.Sprintf("it asks for more than %d ConfigMaps and Secrets", maxSources)
	}
	length := 0
	for _, f := range in.Findings {
		length += len(f.ID.Name)
	}
	if length > maxNames {
		return fmt.Sprintf("it asks for ConfigMaps and Secrets whose names have more than %d KiB together", maxNames>>10)
	}
	return ""
}

// isMistake reports whether somebody has to mend something before the workload can
// be decided on. What is on record stays as it is.
func (d Decision) isMistake() bool {
	switch d.Reason {
	case input.InvalidAnnotation, input.NoTemplate, input.TooManySources:
		return true
	default:
		return false
	}
}

// asksToBeFollowed: by an annotation around the workload, or because it was
// followed and nothing forbids it; a source can ask for it too, and without a
// template nobody knows which sources those are.
func (in Input) asksToBeFollowed() bool {
	return in.Intent.Mode == settings.Follow || in.Intent.Mode == settings.Unset && len(in.Entry.Inputs) > 0
}

// decideDue is the order in which something can stand in the way of a change.
func (in Input) decideDue(d Decision) Decision {
	if in.ReadsByItself {
		d.Verb, d.Reason = Remember, input.NextJob
		return d.delivered()
	}
	if wait := in.quietFor(d); wait > 0 {
		d.Verb, d.Reason, d.Recheck = Wait, input.QuietWindow, wait
		return d
	}
	if reason, message, barred := in.barred(); barred {
		d.Verb, d.Reason, d.Message = Hold, reason, message+": "+d.Message
		return d
	}
	if in.Intent.Observe {
		d.Verb, d.Reason = Observe, input.WouldReload
		return d.delivered()
	}
	return in.decideStrategy(d)
}

// decideStrategy chooses the way in which the workload is moved.
func (in Input) decideStrategy(d Decision) Decision {
	if in.Intent.Strategy != settings.StrategyTemplate && !in.PodsAllowed {
		d.Verb, d.Reason = Hold, input.StrategyOff
		d.Message = fmt.Sprintf("annotation %s: %s is switched off here; start the controller with --pod-strategies: %s", settings.Strategy, in.Intent.Strategy, d.Message)
		return d
	}
	switch in.Intent.Strategy {
	case settings.StrategyEvict:
		// Delivered only when no older pod is left, see evict.
		d.Verb, d.Reason = Evict, input.Evicting
		return d
	case settings.StrategyRefresh:
		d.Verb, d.Reason = Refresh, input.NotRefreshable
		if mounted := mounted(d.Moves); len(mounted) > 0 {
			d.Reason, d.Message = input.Refreshed, changes(mounted)
		}
		return d.delivered()
	case settings.StrategyTemplate:
	}
	d.Verb, d.Reason = Move, input.Reloaded
	return d.delivered()
}

// quietFor is how long the workload's sources must still be quiet. With a quiet
// window of 5 s and a maximum delay of 60 s, changes at 0 s and 3 s are
// delivered at 8 s; changes every second are delivered at 60 s.
func (in Input) quietFor(d Decision) time.Duration {
	var last time.Time
	for _, f := range d.Moves {
		if f.ChangedAt.After(last) {
			last = f.ChangedAt
		}
	}
	ready := last.Add(in.Intent.Quiet)
	if latest := d.PendingSince.Add(in.MaxDelay); latest.Before(ready) {
		ready = latest
	}
	return ready.Sub(in.Now)
}

// barred looks for an input that must not reach the pods. Any rollout loads the
// live content of every source, so one such input holds the whole workload.
func (in Input) barred() (input.Reason, string, bool) {
	if in.Intent.Held {
		return input.Held, "held by annotation " + settings.Hold + quoted(in.Intent.HeldBy), true
	}
	for _, f := range in.Findings {
		switch {
		case f.Barred == input.Held && f.Standing == input.Due:
			return input.Held, f.ID.String() + " is held" + quoted(f.BarredBy), true
		case f.Barred == input.Undone:
			return input.Undone, f.ID.String() + " " + f.Current.Short() + " was taken back, and a rollout would load it again", true
		}
	}
	return "", "", false
}

// settled decides when nothing is due.
func settled(in Input) Decision {
	if records := withStanding(in.Findings, input.Record); len(records) > 0 {
		return Decision{Verb: Remember, Reason: records[0].Reason, Message: names(records)}
	}
	for _, f := range in.Findings {
		if f.Reason == input.Undone {
			return Decision{Verb: Leave, Reason: input.Undone, Message: f.ID.String() + " was taken back"}
		}
	}
	return Decision{Verb: Leave, Reason: input.InStep, Message: names(in.Findings)}
}

// delivered ends the pending change.
func (d Decision) delivered() Decision {
	d.PendingSince, d.Delivered = time.Time{}, true
	return d
}

func withStanding(findings []input.Finding, s input.Standing) []input.Finding {
	var found []input.Finding
	for _, f := range findings {
		if f.Standing == s {
			found = append(found, f)
		}
	}
	return found
}

// changes tells from what to what, by short digests: "configmap/app 3fa9c1d2e4 -> 77ab01c9de".
func changes(due []input.Finding) string {
	parts := make([]string, len(due))
	for i, f := range due {
		from := "unknown"
		if !f.Given.IsZero() {
			from = f.Given.Short()
		}
		parts[i] = fmt.Sprintf("%s %s -> %s", f.ID, from, f.Current.Short())
	}
	return strings.Join(parts, ", ")
}

func names(findings []input.Finding) string {
	parts := make([]string, len(findings))
	for i, f := range findings {
		parts[i] = f.ID.String()
	}
	return strings.Join(parts, ", ")
}

func problems(intent settings.Intent) string {
	parts := make([]string, len(intent.Problems))
	for i, p := range intent.Problems {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%q)", text)
}
