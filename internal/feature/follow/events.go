package follow

import (
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// eventFor is what people see of a decision on the workload. Most decisions
// change nothing and are no event.
func eventFor(w *kube.Workload, d Decision) (kube.Event, bool) {
	e := kube.Event{About: w, Reason: string(d.Reason), Action: string(d.Verb)}
	switch d.Reason {
	case input.Reloaded:
		e.Note = "rolled out " + d.Message
	case input.WouldReload:
		e.Note = "observe mode, nothing written; would roll out " + d.Message
	case input.InvalidAnnotation:
		e.Warning = true
		e.Note = d.Message + "; the workload is left alone until this is mended"
	case input.Held, input.Undone:
		if d.Verb != Hold {
			return kube.Event{}, false
		}
		e.Note = "not rolled out: " + d.Message
	default:
		return kube.Event{}, false
	}
	return e, true
}

// failureEvent is what people see of a change that the API server refused.
func failureEvent(w *kube.Workload, d Decision, err error) kube.Event {
	return kube.Event{
		About: w, Warning: true, Reason: string(input.ReloadFailed), Action: string(d.Verb),
		Note: "could not roll out " + d.Message + ": " + err.Error(),
	}
}
