package rollouts

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// eventsFor are the events of a decision. Most decisions change nothing and don't cause
// an event.
func eventsFor(w *kube.Workload, d Decision, advice func() string) []announce.Event {
	var events []announce.Event
	if note, warning, ok := note(d); ok {
		if d.Reason == input.Undone {
			note += advice()
		}
		events = append(events, announce.Event{About: w.Reference(), Warning: warning, Reason: string(d.Reason), Action: string(d.Verb), Note: note})
	}
	if d.Verb == Refresh {
		if lost := unrefreshable(d.Due); len(lost) > 0 {
			events = append(events, announce.Event{
				About: w.Reference(), Warning: true, Reason: string(input.NotRefreshable), Action: string(d.Verb),
				Note: "only a restart loads these, which aren't mounted or are read as environment variables or by subPath: " + names(lost),
			})
		}
	}
	newest := latest(d.Due)
	for i := range events {
		events[i].Source, events[i].SourceVersion = newest.ID, newest.ResourceVersion
		events[i].Change = latest(d.Due).Change
	}
	return events
}

// latest is the source that changed last, zero when none changed.
func latest(due []input.Finding) input.Finding {
	if len(due) == 0 {
		return input.Finding{}
	}
	return slices.MaxFunc(due, func(a, b input.Finding) int { return a.ChangedAt.Compare(b.ChangedAt) })
}

func note(d Decision) (text string, warning, ok bool) {
	switch d.Reason {
	case input.Reloaded:
		return "rolled out " + d.Message, false, true
	case input.AwaitsPods:
		return "wrote the pod template for " + d.Message, false, d.Verb == RollOut
	case input.WouldReload:
		return "observe mode: would roll out " + d.Message, false, true
	case input.PutBack:
		return "restored " + d.Message, true, true
	case input.Contested, input.Quarantined:
		return "not rolled out: " + d.Message, true, d.Verb == Hold
	case input.Evicting:
		return "evicting pods one at a time for " + d.Message, false, true
	case input.Evicted:
		return "every pod is newer than " + d.Message, false, true
	case input.Refreshed:
		return "notified the kubelets to refresh mounted files for " + d.Message, false, true
	case input.RecordTooNew:
		return d.Message + ". Lockstep doesn't roll out the workload until that version runs again", true, true
	case input.InvalidAnnotation, input.TooManySources:
		return d.Message + ". Lockstep leaves the workload alone until you correct it", true, true
	case input.RecordFull:
		return d.Message + ". Lockstep leaves the workload alone until there is room", true, true
	case input.NoTemplate:
		return d.Message + ". Lockstep can't follow the object", true, true
	case input.StrategyOff, input.BeyondStrategy:
		return "not rolled out: " + d.Message, true, true
	case input.ImmutableReplaced:
		return "not rolled out: " + d.Message + "; give the new content a new name", true, true
	case input.Undone:
		if d.Verb == Hold {
			return "not rolled out: " + d.Message, true, true
		}
		return d.Message, true, true
	case input.ReloadFailed:
		return d.Message, true, true
	case input.Released:
		return "accepted without a rollout: " + d.Message, false, true
	case input.Held, input.Missing, input.Stopped, input.VersionStopped:
		return "not rolled out: " + d.Message, true, d.Verb == Hold
	case input.Paused:
		return "not rolled out: " + d.Message, false, d.Verb == Hold
	case input.AwaitsFirst:
		return "not rolled out yet: " + d.Message, false, true
	default:
		return "", false, false
	}
}

// warnings are the events about names that don't exist and about settings without effect.
func warnings(w *kube.Workload, in Observation) []announce.Event {
	var events []announce.Event
	warn := func(reason input.Reason, note string) { events = append(events, warning(w, reason, note)) }
	for _, p := range in.Intent.Mistakes.Warnings {
		warn(input.InvalidAnnotation, "namespace "+w.Key.Namespace+": "+p.String()+effect(p))
	}
	for _, p := range in.Intent.Mistakes.Ignored {
		warn(input.InvalidAnnotation, p.String()+effect(p))
	}
	for _, key := range in.Intent.Mistakes.Unknown {
		warn(input.InvalidAnnotation, "annotation "+key+" is unknown and has no effect; known annotations: "+strings.Join(settings.ForWorkloads(), ", "))
	}
	for _, text := range in.Intent.Mistakes.Lost {
		warn(input.InvalidAnnotation, text)
	}
	for _, text := range in.Intent.Mistakes.Refused {
		warn(input.InvalidAnnotation, text+"; the image stays as it is")
	}
	for _, about := range in.Warnings {
		warn(about.Reason, about.Text)
		events[len(events)-1].Source, events[len(events)-1].Change = about.About, about.Change
	}
	s := in.situation()
	if off := s.strategyOff(); off != "" && len(withStanding(in.Findings, input.Due)) == 0 {
		warn(input.StrategyOff, off)
	}
	if other := in.State.OtherInstallation; other != "" {
		warn(input.OtherInstallation, "another Lockstep installation, in namespace "+other+", rolled out this workload; let only one of them follow its namespace")
	}
	if beyond := s.beyondStrategy(); beyond != "" && len(s.draft.Due) > 0 {
		warn(input.BeyondStrategy, beyond)
	}
	return events
}

// warning isn't inlined, because an event is large and there are many warnings.
//
//go:noinline
func warning(w *kube.Workload, reason input.Reason, note string) announce.Event {
	return announce.Event{About: w.Reference(), Warning: true, Reason: string(reason), Action: announce.ActionWarn, Note: note}
}

// followingEvent is the event when a workload begins to be followed.
func followingEvent(w *kube.Workload, in Observation) announce.Event {
	return announce.Event{About: w.Reference(), Reason: string(input.Following), Action: string(Remember), Note: "follows " + names(in.Findings)}
}

// effect describes the effect of a namespace setting that isn't understood.
func effect(p settings.Problem) string {
	if p.Key == settings.Observe {
		return "; it counts as true until you correct it"
	}
	return "; it has no effect"
}

// joined makes one event of those with the same reason and source.
func joined(events []announce.Event) []announce.Event {
	var all []announce.Event
	for _, e := range events {
		same := func(other announce.Event) bool { return other.Reason == e.Reason && other.Source == e.Source }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Note += "; " + e.Note
			continue
		}
		all = append(all, e)
	}
	return all
}

// failureEvent is the event for a change that the API server refused.
func failureEvent(w *kube.Workload, d Decision, err error) announce.Event {
	return announce.Event{
		About: w.Reference(), Warning: true, Reason: string(input.ReloadFailed), Action: string(d.Verb),
		Note: d.failure(err).Message, Change: latest(d.Due).Change,
	}
}

// failure is a decision that the API server refused.
func (d Decision) failure(err error) Decision {
	message := "could not roll out " + d.Message + ": " + err.Error()
	if text, denied := access.Denial(err); denied {
		message = text + "; not rolled out: " + d.Message
	}
	return Decision{Verb: Hold, Reason: input.ReloadFailed, Message: message, Due: d.Due}
}
