package ask

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/adapter/lineage"
	"github.com/lockstep-dev/lockstep/internal/core/health"
)

// The authors of a revision that aren't field managers.
const (
	ByLockstep = "Lockstep"
	ByUnknown  = "not known"
)

// History is which revision of a workload was started with which inputs, and by whose
// change, as far as that is proven.
type History struct {
	Workload  string `json:"workload"`
	Namespace string `json:"namespace"`
	// Revisions are the revisions, newest first.
	Revisions []Revision `json:"revisions"`
	// Events are the events about the workload, oldest first.
	Events []Event `json:"events"`
	// Notes are messages about objects that could not be read, or that the kind doesn't keep.
	Notes []string `json:"notes,omitempty"`
}

// Revision is one turn of a workload's revisions. A ReplicaSet that was used again has
// several turns, each with its number.
type Revision struct {
	// Number is the revision's number.
	Number int64 `json:"revision"`
	// Name is the name of the ReplicaSet or ControllerRevision.
	Name string `json:"name"`
	// Started is the time at which the revision became current, omitted if that isn't known.
	Started *time.Time `json:"started,omitempty"`
	// Current is true for the revision that new pods are created from.
	Current bool `json:"current,omitempty"`
	// Again is true when an earlier revision was made current again.
	Again bool `json:"again,omitempty"`
	// Pods is its number of pods, omitted if that isn't known.
	Pods *int `json:"pods,omitempty"`
	// Inputs are the versions of the sources that it was started with, as its template shows them.
	Inputs map[string]string `json:"inputs,omitempty"`
	// Images are the images that it was started with, by container.
	Images map[string]string `json:"images,omitempty"`
	// Changed are the differences from the revision before.
	Changed []Change `json:"changed,omitempty"`
	// First is true when no earlier revision is known.
	First bool `json:"first,omitempty"`
	// By is the program that made all changes of the revision, "not known" if that isn't proven. An earlier revision names
	// only Lockstep.
	By string `json:"by"`
	// Outcome is the state of the rollout, for the newest template only.
	Outcome string `json:"outcome,omitempty"`
}

// Change is a difference between two turns. From or To is empty where that turn has no
// version, both for a change without versions.
type Change struct {
	// What is the changed input, image or field.
	What string `json:"what"`
	// From is the version before, omitted if there is none.
	From string `json:"from,omitempty"`
	// To is the version after, omitted if there is none.
	To string `json:"to,omitempty"`
}

// Event is an event about the workload.
type Event struct {
	// At is the time of the event.
	At time.Time `json:"at"`
	// Reason is the event's reason.
	Reason string `json:"reason"`
	// Note is the event's message.
	Note string `json:"note"`
	// By is the component that reported the event.
	By string `json:"by"`
}

// IsOurs reports whether Lockstep or one of its commands reported it.
func (e Event) IsOurs() bool { return e.By == announce.Reporter || e.By == announce.CommandReporter }

func eventOf(t announce.Reported) Event {
	return Event{At: t.At, Reason: t.Reason, Note: t.Note, By: t.By}
}

// Past is what was read about a workload's past.
type Past struct {
	Workload  *kube.Workload
	Authors   kube.Authors
	Revisions []lineage.Past
	Events    []announce.Reported
	// Unread lists what could not be read, and why.
	Unread []string
}

// HistoryOf builds the history.
func HistoryOf(p Past) History {
	w := p.Workload
	h := History{Workload: w.Kind.Name() + "/" + w.Key.Name, Namespace: w.Key.Namespace, Revisions: []Revision{}, Events: []Event{}, Notes: p.Unread}
	for _, t := range p.turns() {
		if t.latest {
			t.Outcome = outcomeOf(w)
		}
		h.Revisions = append(h.Revisions, t.Revision)
	}
	slices.Reverse(h.Revisions)
	for _, e := range p.Events {
		h.Events = append(h.Events, eventOf(e))
	}
	switch {
	case w.Kind.Revisions.Transient:
		h.Notes = append(h.Notes, fmt.Sprintf("a %s doesn't keep revisions: each %s is created from the template at that time", w.Key.Kind, w.Kind.Revisions.Kind))
	case w.Selector == nil && len(p.Revisions) == 0:
		h.Notes = append(h.Notes, fmt.Sprintf("the revisions of a %s are not known, because it doesn't have a selector", w.Key.Kind))
	case len(p.Revisions) == 0 && len(p.Unread) == 0:
		h.Notes = append(h.Notes, "it doesn't have a revision yet")
	}
	return h
}

// outcomeOf is how the rollout of the workload's template goes.
func outcomeOf(w *kube.Workload) string {
	switch of := health.Of(w.Status.Status, 0); of.State {
	case health.Done:
		return "healthy"
	case health.Progressing:
		return "rolling"
	default:
		return string(of.State)
	}
}
