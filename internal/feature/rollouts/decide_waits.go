package rollouts

import (
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// notActed: before the workload's controller has acted on another writer's change,
// Lockstep can't judge that change or which pods run. Until then it doesn't roll out and
// doesn't write the record.
func notActed(s situation) (Decision, bool) {
	d := s.draft.as(Wait, input.GenerationNotObserved)
	d.Message, d.AwaitsStatus = "the workload's controller has not acted yet on its last change", true
	return d, s.History.NotActed || slices.ContainsFunc(s.Findings, func(f input.Finding) bool { return f.Reason == input.GenerationNotObserved })
}

// notFollowed: no setting asks for the workload. A workload whose patterns match no
// source yet stays on record with its patterns, so a source that appears later is known
// to be new. One whose template doesn't use anything any more stays on record with that template:
// a later template that uses a source was rolled out since. While it is paused, the versions
// that were delivered to its pods stay, too.
func notFollowed(s situation) (Decision, bool) {
	if len(s.Findings) == 0 && len(s.Searched) > 0 && s.Force == NoForce {
		return Decision{Verb: Leave, Reason: input.NotFollowed, Message: "no source matches its patterns yet"}, true
	}
	knowsSources := slices.Contains(s.Kinds, input.KindConfigMap) // otherwise what the template uses isn't known
	stays := knowsSources && s.Entry.HasTemplate() || s.State.Unrolled && len(s.Entry.Inputs) > 0
	if len(s.Findings) == 0 && s.Intent.Mode == settings.Follow && s.Force == NoForce && stays {
		message := "its template doesn't use anything to follow any more"
		if s.State.Unrolled {
			message += ", and is not rolled out yet"
		}
		return Decision{Verb: Leave, Reason: input.NotFollowed, Message: message}, true
	}
	message := "it doesn't use anything that can be followed"
	if s.Intent.Mode != settings.Follow {
		message = "no annotation enables following it"
	}
	return Decision{Verb: Ignore, Reason: input.NotFollowed, Message: message}, len(s.Findings) == 0
}

// recorded names the inputs, and the program whose rollout delivered them.
func (s situation) recorded(findings []input.Finding) string {
	if s.State.TemplateBy == "" || findings[0].Reason != input.DeliveredByRollout {
		return names(findings)
	}
	return names(findings) + "; the pod template was last written by " + s.State.TemplateBy
}

// nothingDue: the current versions were delivered, or are recorded as delivered.
func nothingDue(s situation) (Decision, bool) {
	if s.Force != NoForce || len(withStanding(s.Findings, input.Due)) > 0 {
		return Decision{}, false
	}
	if back := revertedInWords(s.Findings); back != "" {
		return Decision{Verb: Leave, Reason: input.Undone, Message: back}, true
	}
	released := func(f input.Finding) bool { return slices.Contains(s.Template.Released, f.ID) }
	if accepted := matching(s.Findings, released); len(accepted) > 0 {
		return Decision{Verb: Remember, Reason: input.Released, Message: names(accepted), AwaitsStatus: s.State.Rollout.RollsByHand()}, true
	}
	if records := withStanding(s.Findings, input.Record); len(records) > 0 {
		return Decision{Verb: Remember, Reason: records[0].Reason, Message: s.recorded(records), AwaitsStatus: s.State.Rollout.RollsByHand()}, true
	}
	for _, f := range s.Findings {
		if _, missing := f.BarredFor(input.Missing); missing {
			return Decision{Verb: Leave, Reason: input.Missing, Message: because(f, input.Bar{Reason: input.Missing})}, true
		}
	}
	for _, w := range s.Warnings {
		if w.Reason == input.Unresolved || w.Reason == input.RolloutFailed {
			return Decision{Verb: Leave, Reason: w.Reason, Message: w.Text}, true
		}
	}
	return Decision{Verb: Leave, Reason: input.InStep, Message: names(s.Findings)}, true
}

// readByTheNextJob: the workload starts new pods by itself, and every new pod loads all due
// inputs. An image needs a patch, unless the template already contains it.
func readByTheNextJob(s situation) (Decision, bool) {
	if !s.State.StartsPods || len(s.draft.Due) == 0 && s.Force == NoForce {
		return Decision{}, false
	}
	for _, f := range s.draft.Due {
		if !f.Live && (f.Standing == input.Due || f.Image != "") {
			return Decision{}, false
		}
	}
	return s.delivered(s.draft.as(Remember, input.NextJob)), true
}

// notQuiet: the inputs have changed too recently. With a quiet window of 5 s and a
// maximum delay of 60 s, changes at 0 s and 3 s are delivered at 8 s; changes every
// second are delivered at 60 s. A window that is longer than the maximum delay replaces
// it as the bound.
func notQuiet(s situation) (Decision, bool) {
	if s.Force == ForceNow {
		return Decision{}, false
	}
	var last time.Time
	for _, f := range s.draft.Due {
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
	hold := s.Hold()
	return s.held(input.Held, hold), hold != "" && s.Force != ForceNow
}

// barredInput: an input that must not reach the pods. Every new pod loads a live input,
// so a barred one holds the whole workload. An input that comes with the template holds
// only itself; when nothing else is due the change waits for it.
func barredInput(s situation) (Decision, bool) {
	for _, f := range s.Findings {
		for _, bar := range f.Bars {
			if s.respects(f, bar) && (f.Live || f.Standing == input.Due && len(s.draft.Due) == 0) {
				return s.held(bar.Reason, because(f, bar)), true
			}
		}
	}
	return Decision{}, false
}

func because(f input.Finding, bar input.Bar) string {
	switch {
	case bar.Reason == input.Held:
		return f.ID.String() + " is held" + quoted(bar.By)
	case bar.Reason == input.Missing:
		return f.ID.String() + " does not exist, and pods can't start without it"
	case bar.Reason == input.ImmutableReplaced:
		return f.ID.String() + " is immutable and was replaced, and nodes where a pod still uses it keep the old content"
	case bar.Reason == input.VersionStopped:
		return withVersion(f) + " is stopped: it " + bar.By + ", which was healthy before"
	case bar.Reason == input.Contested, bar.Reason == input.Quarantined:
		return f.ID.String() + " " + bar.By
	case f.Live:
		return revertedInWords([]input.Finding{f}) + ", and a rollout would load it again"
	}
	return revertedInWords([]input.Finding{f})
}

// paused: the change waits, because a template that is written now doesn't start pods and
// may be changed again before the workload is resumed.
func paused(s situation) (Decision, bool) {
	return s.held(input.Paused, "the workload is paused (spec.paused)"), s.State.Rollout.Paused && s.strategy.changesTemplate() && s.Force == NoForce
}

func observed(s situation) (Decision, bool) {
	return s.delivered(s.draft.as(Observe, input.WouldReload)), s.Intent.Observe && s.Force == NoForce
}
