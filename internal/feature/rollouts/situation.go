package rollouts

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/timeline"
)

// Observation is everything that a decision depends on.
type Observation struct {
	Intent settings.Intent
	// Assessment joins the findings of all families. Kinds are the kinds of inputs that
	// these families know.
	input.Assessment
	Kinds []input.Kind
	State WorkloadState
	Pods  PodState
	// Template is the pod template as other writers left it.
	Template Template
	History  History
	// Entry is the entry on record, and RecordFull explains why there is no room for
	// more, empty when there is.
	Entry      record.Entry
	RecordFull string
	// MaxDelay bounds the quiet window, counted from the first pending change, while the
	// workload could have been rolled out.
	MaxDelay time.Duration
	Now      time.Time
	Force    Force
	// Estimate is true when bounds and times of changes aren't known, because the input
	// was read live and not watched.
	Estimate bool
	Gates    Gates
	Turn     TurnState
}

// WorkloadState is the state that the workload object shows.
type WorkloadState struct {
	// TooLarge says that the workload is too large to be kept, empty for most.
	TooLarge string
	// NoTemplate explains why the object has no pod template, empty when it has one.
	NoTemplate string
	// Shown are the pod template's marks, Replicas how many pods the workload asks for,
	// zero when it doesn't set a number.
	Shown    input.Shown
	Replicas int
	// StartsPods is true for a workload that regularly starts new pods by itself: a
	// CronJob.
	StartsPods bool
	// Unrolled is true while pods are created from another template.
	Unrolled bool
	// Rollout is the rollout status that the workload reports, and Health is derived from
	// it. A drop-in writes as its original did and uses neither.
	Rollout health.Status
	Health  health.Health
	// OtherInstallation is the one that rolled out the workload last, empty when it was
	// ours.
	OtherInstallation string
	// TemplateBy is the field manager of the last template write by another program.
	TemplateBy string
}

// PodState is what is known about the workload's pods.
type PodState struct {
	// Off explains why the strategies that work on pods can't be used and how to change
	// that, empty when they can.
	Off string
	// All are the pods, gathered where NeedsPods; Problem is why they could not be
	// listed.
	All     []pods.Pod
	Problem error
}

// History is what is known about the workload's past.
type History struct {
	// Past contains the workload's revisions, if they were queried. MarksOnly is true for
	// a program that never queries them: only the template's marks show the past.
	Past      timeline.Past
	MarksOnly bool
	// NotActed is true when the workload's controller hasn't acted yet on another writer's
	// change, so the change can't be judged.
	NotActed bool
}

// Decision is what to do with a workload, and why.
type Decision struct {
	Verb   Verb
	Reason input.Reason
	// Message is one line for users, the same for the same situation.
	Message string
	// Due are the inputs to be rolled out.
	Due []input.Finding
	// Delivered is true when they count as delivered once the decision is carried out.
	Delivered bool
	// PendingSince is when the oldest undelivered change was first seen.
	PendingSince time.Time
	// DelaySince is since when the workload could have been rolled out for it, zero while
	// something forbids that.
	DelaySince time.Time
	// Recheck is when to check again, zero when only an event can change anything.
	Recheck time.Duration
	// AwaitsStatus is true when a change of the workload's status is a reason to check
	// again.
	AwaitsStatus bool
	// Eviction is the next step of a series of evictions.
	Eviction Eviction
	// Estimate is true when the decision is based on an Observation that is an estimate.
	Estimate bool
}

// Eviction is one step of a series of evictions; the zero value waits.
type Eviction struct {
	// For is the versions that the series delivers.
	For string
	// Begin puts the series on record, with the number of pods if the workload doesn't
	// set one.
	Begin bool
	Pods  int
	// Victim is the pod to evict, nil while an earlier step hasn't finished.
	Victim *pods.Pod
}

// situation is an observation with values derived from it.
type situation struct {
	Observation
	// strategy delivers a change to this workload.
	strategy strategy
	// draft is a decision about the inputs to be rolled out.
	draft Decision
}

// strategy is a way to deliver a change to the pods of a workload. It only decides, without
// I/O; act carries out the verb of the decision.
type strategy interface {
	// changesTemplate reports whether the strategy writes a new pod template. A strategy
	// that doesn't can deliver only live inputs.
	changesTemplate() bool
	// objects holds a change that the strategy can't deliver.
	objects(situation) (Decision, bool)
	// decide returns the decision on a change that is due and that no check objects to.
	decide(situation) Decision
}

// order is what a decision delivers to the workload.
func (in Observation) order(d Decision) input.Order {
	return input.Order{All: in.Findings, Due: d.Due, Kinds: in.Kinds}
}

// rollsOut are the inputs that are due, without those that simply stay as the template
// has them: barred ones, and those that the strategy can't deliver. A forced rollout
// delivers every input that exists. It leaves out a barred input that comes with the
// template, unless that bar doesn't count.
func (s situation) rollsOut() []input.Finding {
	return matching(s.Findings, func(f input.Finding) bool {
		if s.Force != NoForce {
			stays := slices.ContainsFunc(f.Bars, func(bar input.Bar) bool { return s.respects(f, bar) })
			return f.Shows != input.Mark{} && (f.Live || !stays)
		}
		return f.Standing == input.Due && !f.IsWithheld() && (f.Live || s.strategy.changesTemplate())
	})
}

// pendingSince is when the oldest due change was first seen. A time in the future was
// written by a process whose clock is ahead of ours.
func (in Observation) pendingSince() time.Time {
	if p := in.Entry.PendingSince; !p.IsZero() && !p.After(in.Now) {
		return p
	}
	return in.Now
}

// as makes a decision of a draft.
func (d Decision) as(verb Verb, reason input.Reason) Decision {
	d.Verb, d.Reason = verb, reason
	return d
}

// held is a change that something forbids. A user who forces it knows what it would
// change.
func (s situation) held(reason input.Reason, why string) Decision {
	if s.Force == NoForce {
		why += ": " + s.draft.Message
	}
	s.draft.Message = why
	return s.draft.as(Hold, reason)
}

// delivered ends the pending change, unless something stays due.
func (s situation) delivered(d Decision) Decision {
	d.Delivered, d.DelaySince = true, time.Time{}
	stays := matching(s.Findings, func(f input.Finding) bool { return f.Standing == input.Due && !contains(d.Due, f.ID) })
	if len(stays) == 0 {
		d.PendingSince = time.Time{}
	}
	return d
}

// respects reports whether a bar counts. A hold on a source that the pods have already
// loaded forbids nothing, nor does a stop, but any rollout would load a reverted input again. A user who
// forces a rollout overrules a revert. Holds, quarantine and contest are overruled only
// by ForceNow.
func (in Observation) respects(f input.Finding, bar input.Bar) bool {
	switch in.Force {
	case ForceNow:
		return false
	case ForceRollOut:
		return slices.Contains([]input.Reason{input.Held, input.Missing, input.Quarantined, input.Contested, input.VersionStopped}, bar.Reason)
	case NoForce:
	}
	return f.Standing == input.Due || bar.Reason != input.Held && bar.Reason != input.VersionStopped
}

// Template is what is known about a workload's pod template and other writers' changes to
// it.
type Template struct {
	// Now is the one that the entry takes into account after the decision.
	Now record.Template
	// Reverted are the reverted inputs, each with the revision that new pods are created
	// from.
	Reverted map[input.ID]string
	// From lists, for inputs that another rollout delivered, which revisions the workload
	// had before it.
	From map[input.ID]timeline.Origin
	// Released are inputs that were reverted until a user accepted them.
	Released []input.ID
	// Hold is a hold that counts even though an undo removed its annotation.
	Hold record.Hold
}

// earlierRevision stands for the name of an unknown revision.
const earlierRevision = "unknown"

// sooner is the shorter of two durations, where zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
