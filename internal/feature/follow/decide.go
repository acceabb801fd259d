package follow

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/health"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/pods"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// maxSources bounds what is remembered of one workload and shown in its template.
// A ConfigMap of the record holds 1 MiB for many workloads, and one that is too large
// is refused as a whole. One that asks for more must not harm them.
const maxSources = 256

// maxNames bounds the names of those sources together. The API server does not check
// the names in a pod template, so that a single one could fill the object.
const maxNames = 16 << 10

// roomCheck is how often to look whether the record has room again.
const roomCheck = time.Minute

// evictionCheck is how often a series of evictions looks whether the workload is
// available again.
const evictionCheck = 2 * time.Second

// Input is everything that a decision depends on.
type Input struct {
	Intent settings.Intent
	// Findings are what is known of each input, and Warnings what people should know
	// of them.
	Findings []input.Finding
	Warnings []input.Warning
	// StartsPods is true for a workload that starts new pods by itself, again and
	// again: a CronJob.
	StartsPods bool
	// Rollout is what the workload says of its rollout, and Health what follows from it.
	// A drop-in writes as its original did and asks neither.
	Rollout health.Status
	Health  health.Health
	// NoTemplate says why the object has no pod template, empty when it has one.
	NoTemplate string
	// PodsOff says why the strategies that work on pods cannot be used and what to do
	// about it, empty when they can.
	PodsOff string
	// Shown is what the pod template shows, Replicas how many pods the workload asks
	// for, zero when it does not say.
	Shown    input.Shown
	Replicas int
	// Pods are the workload's pods, gathered where NeedsPods; PodsProblem is why they
	// could not be.
	Pods        []pods.Pod
	PodsProblem error
	// Kinds are the kinds of inputs of the families that were asked, and Searched the
	// patterns by which they looked for inputs.
	Kinds    []input.Kind
	Searched []string
	// AwaitsStatus and Recheck are when a family wants to be asked again.
	AwaitsStatus bool
	Recheck      time.Duration
	// OtherInstallation is the one that moved the workload last, empty when it was ours.
	OtherInstallation string
	// Template is what other writers made of the pod template, and Unrolled is true while
	// pods are made from another.
	Template Template
	Unrolled bool
	// Entry is what is on record, and RecordFull says why there is no room for more,
	// empty when there is.
	Entry      record.Entry
	RecordFull string
	// MaxDelay bounds the quiet window, counted from the first pending change, while the
	// workload could have been moved.
	MaxDelay time.Duration
	Now      time.Time
	Force    Force
	// Estimate is true when bounds and times of changes are not known, because the
	// input was read live and not followed.
	Estimate bool
}

// Decision is what to do with a workload, and why.
type Decision struct {
	Verb   Verb
	Reason input.Reason
	// Message is one line for people, the same for the same situation.
	Message string
	// Moves are the inputs that are to be moved.
	Moves []input.Finding
	// Delivered is true when they count as given once the decision is carried out.
	Delivered bool
	// PendingSince is when the oldest undelivered change was first seen.
	PendingSince time.Time
	// DelaySince is since when the workload could have been moved for it, zero while
	// something forbids that.
	DelaySince time.Time
	// Recheck is when to look again, zero when only an event can change anything.
	Recheck time.Duration
	// AwaitsStatus is true when a change of the workload's status is a reason to look
	// again.
	AwaitsStatus bool
	// Eviction is the next step of a series of evictions.
	Eviction Eviction
	// Estimate is true when the decision rests on an Input that is one.
	Estimate bool
}

// Eviction is one step of a series of evictions; the zero value waits.
type Eviction struct {
	// For is what the series delivers.
	For string
	// Begin puts the series on record, with the number of pods where the workload does
	// not say how many it wants.
	Begin bool
	Pods  int
	// Victim is the pod to evict, nil while an earlier step has not come to its end.
	Victim *pods.Pod
}

// situation is an input with what follows from it at once.
type situation struct {
	Input
	// draft is a decision about the inputs that are to be moved.
	draft Decision
}

// check is one step of the rule: it answers, or leaves the question to the next.
type check func(situation) (Decision, bool)

// Decide says what has to happen to a workload now. The first check that knows an
// answer gives it.
func Decide(in Input) Decision {
	s := in.situation()
	for _, c := range []check{
		settingNotUnderstood, // a person has to correct it first
		templateMissing,      // there is nothing to move
		recordTooNew,         // a newer program knows what was given
		tooManySources,       // one workload must not fill the record of others
		recordFull,           // what is not on record would be given again and again
		notFollowed,          // nothing asks for it
		unobserved,           // another writer was here, and its rollout has not begun
		awaitsPods,           // the template has it, and older pods are left
		nothingDue,           // given what exists, or only the record changes
		readByTheNextJob,     // new pods start by themselves
		notQuiet,             // more changes may come
		heldWorkload,         // a person forbids every change
		barredInput,          // a person forbids this one, or took it back
		paused,               // a new template would restart no pod
		observed,             // the settings ask only to be told
		strategyOff,          // the controller has no rights for it
		beyondStrategy,       // the strategy does not change the template
		evicted,              // one pod after the other
		refreshed,            // no pod restarts
	} {
		if d, known := c(s); known {
			d.Estimate = in.Estimate
			return d
		}
	}
	d := s.moved()
	d.Estimate = in.Estimate
	return d
}

// NeedsPods reports whether the decision depends on the workload's pods. That a series
// of evictions begins does not, where the workload says how many pods it wants.
func (in Input) NeedsPods() bool {
	d := Decide(in)
	return d.Verb == Evict && (!d.Eviction.Begin || in.Replicas == 0)
}

// order is what a decision gives the workload.
func (in Input) order(d Decision) input.Order {
	return input.Order{All: in.Findings, Due: d.Moves, Kinds: in.Kinds}
}

func (in Input) situation() situation {
	moves, due := in.moves(), withStanding(in.Findings, input.Due)
	s := situation{Input: in, draft: Decision{Moves: moves, Message: changes(moves)}}
	switch {
	case in.Force != NoForce:
		s.draft.Message = names(moves)
	case len(moves) == 0:
		s.draft.Message = changes(due)
	}
	if len(moves)+len(due) > 0 {
		s.draft.PendingSince = in.pendingSince()
		s.draft.DelaySince = s.delaySince()
	}
	return s
}

// delaySince is since when the workload could have been moved. What something forbids
// is not delayed by changes that keep coming.
func (s situation) delaySince() time.Time {
	for _, c := range []check{heldWorkload, barredInput, paused, strategyOff, beyondStrategy} {
		if _, stuck := c(s); stuck {
			return time.Time{}
		}
	}
	if d := s.Entry.DelaySince; !d.IsZero() && !d.After(s.Now) {
		return d
	}
	return s.Now
}

// moves are the inputs that are due, without those that simply stay as the template
// has them: barred ones, and those that the strategy cannot deliver. Whoever forces a
// move gets everything that exists, and what is held and comes with the template only
// when holds do not count.
func (in Input) moves() []input.Finding {
	return matching(in.Findings, func(f input.Finding) bool {
		_, held := f.BarredFor(input.Held)
		switch in.Force {
		case ForceNow:
			return f.Shows != input.Mark{}
		case ForceMove:
			return f.Shows != input.Mark{} && (f.Live || !held)
		case NoForce:
		}
		return f.Standing == input.Due && !f.IsWithheld() && (f.Live || !in.usesPods())
	})
}

// pendingSince is when the oldest change that is due was first seen. A time to come
// was written by a process whose clock is ahead of ours.
func (in Input) pendingSince() time.Time {
	if p := in.Entry.PendingSince; !p.IsZero() && !p.After(in.Now) {
		return p
	}
	return in.Now
}

func settingNotUnderstood(s situation) (Decision, bool) {
	return s.mistake(input.InvalidAnnotation, problems(s.Intent)), len(s.Intent.Problems) > 0
}

func templateMissing(s situation) (Decision, bool) {
	return s.mistake(input.NoTemplate, s.NoTemplate), s.NoTemplate != "" && s.asksToBeFollowed()
}

// asksToBeFollowed: by an annotation around the workload, or because it was
// followed and nothing forbids it; a source can ask for it too, and without a
// template it is not known which sources those are.
func (in Input) asksToBeFollowed() bool {
	return in.Force != NoForce || in.Intent.Mode == settings.Follow || len(in.Intent.Images) > 0 || in.Intent.Mode == settings.Unset && len(in.Entry.Inputs) > 0
}

func recordTooNew(s situation) (Decision, bool) {
	return s.mistake(input.RecordTooNew, "a newer version of Lockstep has written its record"), s.Entry.TooNew && len(s.Findings) > 0
}

func tooManySources(s situation) (Decision, bool) {
	excess := s.excess()
	return s.mistake(input.TooManySources, excess), excess != ""
}

// recordFull: a workload is not moved when that could not be put on record. When there
// is room again only a look can tell.
func recordFull(s situation) (Decision, bool) {
	d := s.mistake(input.RecordFull, s.RecordFull)
	d.Recheck = roomCheck
	return d, s.RecordFull != ""
}

// excess says in which way the workload asks for too much, empty when it does not.
func (in Input) excess() string {
	if in.Intent.TooMany != "" {
		return in.Intent.TooMany
	}
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

// mistake is a decision to wait until a person has corrected something. What is on
// record stays as it is.
func (in Input) mistake(reason input.Reason, message string) Decision {
	return Decision{Verb: Leave, Reason: reason, Message: message, PendingSince: in.Entry.PendingSince}
}

// isMistake reports whether a person has to correct something before the workload can
// be decided on.
func (d Decision) isMistake() bool {
	switch d.Reason {
	case input.InvalidAnnotation, input.NoTemplate, input.TooManySources, input.RecordTooNew, input.RecordFull:
		return true
	default:
		return false
	}
}

// notFollowed: nothing asks for the workload. One whose patterns match nothing yet stays
// on record with them, so that what appears later is known to be new; and one that is
// paused, with what its pods were given.
func notFollowed(s situation) (Decision, bool) {
	if len(s.Findings) == 0 && len(s.Searched) > 0 && s.Force == NoForce {
		return Decision{Verb: Leave, Reason: input.NotFollowed, Message: "no source matches its patterns yet"}, true
	}
	if len(s.Findings) == 0 && s.Unrolled && s.Intent.Mode == settings.Follow && s.Force == NoForce && len(s.Entry.Inputs) > 0 {
		return Decision{Verb: Leave, Reason: input.NotFollowed, Message: "its template uses nothing to follow any more, and is not rolled out yet"}, true
	}
	return Decision{Verb: Ignore, Reason: input.NotFollowed, Message: "nothing to follow"}, len(s.Findings) == 0
}

// nothingDue: the workload was given what exists, or takes it as given.
func nothingDue(s situation) (Decision, bool) {
	if s.Force != NoForce || len(withStanding(s.Findings, input.Due)) > 0 {
		return Decision{}, false
	}
	if back := takenBack(s.Findings); back != "" {
		return Decision{Verb: Leave, Reason: input.Undone, Message: back}, true
	}
	released := func(f input.Finding) bool { return slices.Contains(s.Template.Released, f.ID) }
	if accepted := matching(s.Findings, released); len(accepted) > 0 {
		return Decision{Verb: Remember, Reason: input.Released, Message: names(accepted)}, true
	}
	if records := withStanding(s.Findings, input.Record); len(records) > 0 {
		return Decision{Verb: Remember, Reason: records[0].Reason, Message: names(records), AwaitsStatus: s.Rollout.RollsByHand()}, true
	}
	return Decision{Verb: Leave, Reason: input.InStep, Message: names(s.Findings)}, true
}

// readByTheNextJob: the workload starts new pods by itself, and all that is due is
// loaded by every pod that starts. An image is not: that takes a patch.
func readByTheNextJob(s situation) (Decision, bool) {
	if !s.StartsPods || len(s.draft.Moves) == 0 && s.Force == NoForce {
		return Decision{}, false
	}
	for _, f := range s.draft.Moves {
		if !f.Live {
			return Decision{}, false
		}
	}
	return s.delivered(s.draft.as(Remember, input.NextJob)), true
}

// notQuiet: the inputs have changed too recently. With a quiet window of 5 s and a
// maximum delay of 60 s, changes at 0 s and 3 s are delivered at 8 s; changes every
// second are delivered at 60 s. A window that is longer than the maximum delay is kept;
// it then bounds itself.
func notQuiet(s situation) (Decision, bool) {
	if s.Force == ForceNow {
		return Decision{}, false
	}
	var last time.Time
	for _, f := range s.draft.Moves {
		if f.ChangedAt.After(last) {
			last = f.ChangedAt
		}
	}
	ready := last.Add(s.Intent.Quiet)
	latest := s.draft.DelaySince.Add(max(s.MaxDelay, s.Intent.Quiet))
	if !s.draft.DelaySince.IsZero() && latest.Before(ready) {
		ready = latest
	}
	d := s.draft.as(Wait, input.QuietWindow)
	d.Recheck = ready.Sub(s.Now)
	return d, d.Recheck > 0
}

func heldWorkload(s situation) (Decision, bool) {
	return s.held(input.Held, "held by annotation "+settings.Hold+quoted(s.Intent.HeldBy)), s.Intent.Held && s.Force != ForceNow
}

// barredInput: an input that must not reach the pods. Any pod that starts loads a live
// one, so that holds the whole workload. One that comes with the template holds only
// itself; when nothing else is due the change waits for it.
func barredInput(s situation) (Decision, bool) {
	for _, f := range s.Findings {
		for _, bar := range f.Bars {
			if s.respects(f, bar) && (f.Live || f.Standing == input.Due && len(s.draft.Moves) == 0) {
				return s.held(bar.Reason, because(f, bar)), true
			}
		}
	}
	return Decision{}, false
}

// respects reports whether a bar counts. A hold on a source that the pods have already
// forbids nothing; what was taken back would be loaded again by any rollout. A person
// who moves a workload overrules that it was taken back, and holds only when asked to.
func (in Input) respects(f input.Finding, bar input.Bar) bool {
	switch in.Force {
	case ForceNow:
		return false
	case ForceMove:
		return bar.Reason == input.Held
	case NoForce:
	}
	return f.Standing == input.Due || bar.Reason != input.Held
}

func because(f input.Finding, bar input.Bar) string {
	switch {
	case bar.Reason == input.Held:
		return f.ID.String() + " is held" + quoted(bar.By)
	case bar.Reason == input.Missing:
		return f.ID.String() + " does not exist, and no pod could start without it"
	case bar.Reason == input.ImmutableReplaced:
		return f.ID.String() + " is immutable and was replaced, and nodes on which a pod refers to it keep the old copy"
	case bar.Reason == input.Contested, bar.Reason == input.Quarantined:
		return f.ID.String() + " " + bar.By
	case f.Live:
		return takenBack([]input.Finding{f}) + ", and a rollout would load it again"
	}
	return takenBack([]input.Finding{f})
}

// paused: the change waits, because a template that is written now delivers nothing and
// may be changed again before the workload is resumed.
func paused(s situation) (Decision, bool) {
	return s.held(input.Paused, "the workload is paused (spec.paused)"), s.Rollout.Paused && !s.usesPods() && s.Force == NoForce
}

func observed(s situation) (Decision, bool) {
	return s.delivered(s.draft.as(Observe, input.WouldReload)), s.Intent.Observe && s.Force == NoForce
}

func strategyOff(s situation) (Decision, bool) {
	return s.held(input.StrategyOff, s.strategyOff()), s.usesPods() && s.PodsOff != ""
}

func (in Input) strategyOff() string {
	return fmt.Sprintf("annotation %s: %s is switched off here; %s", settings.Strategy, in.Intent.Strategy, in.PodsOff)
}

// usesPods reports whether the workload is moved by way of its pods.
func (in Input) usesPods() bool {
	return in.Force == NoForce && in.Intent.Strategy != settings.StrategyTemplate
}

// beyondStrategy: evict and refresh do not change the pod template, so they cannot
// deliver what comes with it.
func beyondStrategy(s situation) (Decision, bool) {
	return s.held(input.BeyondStrategy, s.beyond()), s.usesPods() && len(s.draft.Moves) == 0
}

// beyond says what the strategy cannot deliver, empty when there is nothing.
func (in Input) beyond() string {
	beyond := matching(in.Findings, func(f input.Finding) bool { return f.Standing == input.Due && !f.Live })
	if !in.usesPods() || len(beyond) == 0 {
		return ""
	}
	return fmt.Sprintf("annotation %s: %s does not change the pod template, and %s comes with it", settings.Strategy, in.Intent.Strategy, names(beyond))
}

// evicted: the series is on record before the first pod goes, so that a restart
// continues it and does not begin it again. It is over when no pod is older.
func evicted(s situation) (Decision, bool) {
	if !s.usesPods() || s.Intent.Strategy != settings.StrategyEvict {
		return Decision{}, false
	}
	d := s.draft.as(Evict, input.Evicting)
	d.Recheck = evictionCheck
	d.Eviction.For = s.order(d).Shown(s.Shown).String()
	if s.Entry.EvictFor != d.Eviction.For || s.Entry.EvictSince.IsZero() {
		d.Eviction.Begin = true
		if s.Replicas == 0 {
			// Without it the gap between a pod and its successor would not be seen.
			d.Eviction.Pods = pods.Running(s.Pods)
		}
		return d, true
	}
	if s.PodsProblem != nil {
		return d, true
	}
	victim, done := pods.NextEviction(s.Pods, max(s.Replicas, s.Entry.EvictPods), s.Entry.EvictSince)
	if done {
		d.Recheck, d.Reason = 0, input.Evicted
		return s.delivered(d), true
	}
	d.Eviction.Victim = victim
	return d, true
}

// refreshed: a refresh delivers at once. What it does not reach is told, and counts as
// given: only a restart would repeat it, and the settings ask for none.
func refreshed(s situation) (Decision, bool) {
	d := s.draft.as(Refresh, input.NotRefreshable)
	if mounted := mounted(d.Moves); len(mounted) > 0 {
		d.Reason, d.Message = input.Refreshed, changes(mounted)
	}
	return s.delivered(d), s.usesPods() && s.Intent.Strategy == settings.StrategyRefresh
}

// as makes a decision of a draft.
func (d Decision) as(verb Verb, reason input.Reason) Decision {
	d.Verb, d.Reason = verb, reason
	return d
}

// held is a change that something forbids. Who forces it knows what it would change.
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
	stays := matching(s.Findings, func(f input.Finding) bool { return f.Standing == input.Due && !contains(d.Moves, f.ID) })
	if len(stays) == 0 {
		d.PendingSince = time.Time{}
	}
	return d
}
