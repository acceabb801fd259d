package ask

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// NotVisible replaces values that the caller has no permission to read.
const NotVisible = "not visible to you"

// Explanation is why a workload is in its state.
type Explanation struct {
	Namespace string `json:"namespace"`
	// Workload is its kind and name, such as "deployment/web".
	Workload string `json:"workload"`
	// Controller is the state of the controller itself.
	Controller Controller `json:"controller"`
	// State is the controller's decision.
	State Report `json:"state"`
	// Meaning is the meaning of the reason, as in the reference.
	Meaning string `json:"meaning,omitempty"`
	// Estimate is an estimate from the objects that can be read now, if they changed after the
	// controller's decision.
	Estimate *Report `json:"estimate,omitempty"`
	Flow
	// Window is the maintenance window that applies.
	Window *Window `json:"window,omitempty"`
	// Settings are the Lockstep annotations of the workload and its namespace.
	Settings []Setting `json:"settings,omitempty"`
	// OwnHold is true when the workload itself is held, even if an undo removed the annotation.
	OwnHold bool `json:"ownHold,omitempty"`
	// Inputs are the ConfigMaps, Secrets and images that the workload uses or lists.
	Inputs []Use `json:"inputs,omitempty"`
	// Warnings are further warnings, which don't stop a rollout.
	Warnings []Event `json:"warnings,omitempty"`
	// Events are Lockstep's events, and those of its commands, oldest first.
	Events []Event `json:"events,omitempty"`
	// Notes are messages about objects that could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Flow is how changes reach the workloads.
type Flow struct {
	// Stops are the stops of automatic changes by an operator.
	Stops []Stop `json:"stops,omitempty"`
	// StoppedVersions are the versions that aren't delivered to further workloads, because they
	// failed.
	StoppedVersions []VersionStop `json:"stoppedVersions,omitempty"`
	// Spread is the progress of each change that the workload waits for, or of the source's
	// change.
	Spread []Spreading `json:"spread,omitempty"`
}

// Setting is a Lockstep annotation.
type Setting struct {
	// Key is the key of the annotation.
	Key string `json:"key"`
	// Value is its value.
	Value string `json:"value"`
	// On is the annotated object: "workload" or "namespace".
	On string `json:"on"`
}

// HoldIn is the annotation that holds, nil without one. That of a workload comes before that of
// its namespace.
func HoldIn(all []Setting) *Setting {
	for i := range all {
		if all[i].Key == settings.Hold {
			return &all[i]
		}
	}
	return nil
}

// IsReleasable reports whether a release of the workload changes something: it is held itself, or
// doesn't get a version until it is released.
func (e *Explanation) IsReleasable() bool {
	for i := range e.Inputs {
		if e.Inputs[i].Undone {
			return true
		}
	}
	switch input.Reason(e.State.Reason) {
	case input.Undone, input.Contested, input.Quarantined:
		return true
	default:
		return e.OwnHold
	}
}

// Use is one input, and how the workload uses it.
type Use struct {
	InputStatus

	// Followed is true when a change to it leads to a rollout.
	Followed bool `json:"followed"`
	// Hidden is the reason why the current version can't be read. `current` is then the recorded
	// version.
	Hidden string `json:"hidden,omitempty"`
	// Places are the places in the pod template that name it.
	Places []string `json:"places,omitempty"`
	// WrittenBy is the program with the latest write among those that own its content, according to its
	// managed fields. That write may have been to another field, such as a label.
	WrittenBy string `json:"writtenBy,omitempty"`
	// WrittenAt is the time of that write.
	WrittenAt *time.Time `json:"writtenAt,omitempty"`
	// Note is the reason why Lockstep doesn't deliver it.
	Note string `json:"note,omitempty"`
	// Undone is true when it was delivered and reverted.
	Undone bool `json:"undone,omitempty"`
	// Held is true when the source itself is held.
	Held bool `json:"held,omitempty"`
}

// Situation is what was read about one workload.
type Situation struct {
	Workload   *kube.Workload
	Namespace  *kube.Namespace
	Controller Controller
	// Entry is the entry on record. Recorded is true when there is one, Readable when the
	// caller may read the record at all.
	Entry              record.Entry
	Recorded, Readable bool
	Events             []announce.Reported
	// Unwritable are the events about the part of the record that the workload belongs to.
	Unwritable []announce.Reported
	// Live is what can be read now, and Hidden what can't.
	Live   rollouts.Observation
	Hidden map[input.ID]string
	// Places are where the template names its sources, and Writers the sources' last
	// writers.
	Places  map[input.ID][]string
	Writers map[input.ID]kube.Writer
	// Fleet is what the record says about all workloads, and Stops what an operator stopped.
	Fleet Fleet
	Stops []Stop
	Gaps
}

// Gaps are what could not be read about a workload, besides its inputs.
type Gaps struct {
	// Blind is true when an object with settings that the decision depends on could not be read:
	// the namespace, or the list of stops.
	Blind bool
	// Unread lists everything that could not be read.
	Unread []string
}

// Explain explains why a workload is in its state.
func Explain(s Situation) Explanation {
	w, state := s.Workload, s.state()
	e := Explanation{
		Namespace: w.Key.Namespace, Workload: w.Kind.Name() + "/" + w.Key.Name, Controller: s.Controller,
		State: state, Estimate: s.estimate(state), Settings: s.settings(), Inputs: s.uses(), Notes: s.Unread,
		Flow: Flow{Stops: s.Stops}, Window: windowOf(s.Live.Gates.Window),
	}
	if s.Recorded {
		lines := s.Fleet.lineup()
		e.Spread, e.State = lines.ofWorkload(w.Key, s.Entry), lines.precise(e.State, w.Key, s.Entry)
		e.StoppedVersions = lines.stoppedIn(w.Key.Namespace, s.Entry.Inputs)
	}
	if hold := s.Live.Hold(); hold != "" && e.NextReport().Reason != string(input.Held) {
		e.Notes = append(slices.Clone(e.Notes), "it is "+hold+": changes wait until the hold ends")
	}
	e.OwnHold = s.Live.Intent.Held || s.Live.Template.Hold.On
	e.Meaning = input.MeaningOf(input.Reason(e.State.Reason))
	if e.State.IsInStep() && (s.Live.Intent.Observe || s.Fleet.Observe) {
		e.Meaning = "Observe mode: the current versions count as delivered, and Lockstep doesn't restart pods."
	}
	for _, t := range s.Events {
		switch {
		case s.Fleet.isPast(t.Reason):
		case t.IsWarning():
			e.Warnings = append(e.Warnings, eventOf(t))
		case t.IsDecision(), t.IsByHand():
			e.Events = append(e.Events, eventOf(t))
		}
	}
	for _, t := range s.Unwritable {
		e.Warnings = append(e.Warnings, eventOf(t))
	}
	return e
}

// state is the controller's decision: the one on record; if that can't be read or had no room,
// the newest event; and without either, an estimate. The controller's flags take precedence:
// they may exclude the workload.
func (s *Situation) state() Report {
	intent := s.Live.Intent
	state := s.Fleet.State(s.told(), s.Workload.Key, intent.Mode == settings.Follow || hasSource(s.Entry), len(intent.Images) > 0)
	state.Ends = s.ends(input.Reason(state.Reason), state.Ends)
	return state
}

func (s *Situation) told() Report {
	if s.Recorded {
		return onRecord(s.Entry)
	}
	told, ok := toldBy(s.Events)
	if ok && told.standsFor(s.Readable) {
		return told
	}
	live := s.live()
	switch {
	case s.Readable && live.Reason == string(input.Baseline):
		live.Message = "no controller has checked it yet"
	case s.saysNothing(live.Reason):
		live.Message = notOnRecord(s.Readable)
	default:
		return live
	}
	live.Reason, live.Ends = NotOnRecord, firstLook(s.Readable)
	return live
}

// settings are the annotations of the workload and of its namespace.
func (s *Situation) settings() []Setting {
	var all []Setting
	add := func(on string, annotations map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			if key == settings.Release {
				continue // it was carried out
			}
			all = append(all, Setting{Key: key, Value: annotations[key], On: on})
		}
	}
	add("workload", s.Workload.Annotations)
	if s.Namespace != nil {
		add("namespace", s.Namespace.Annotations)
	}
	return all
}

// uses are all inputs that are followed, are on record, or that the template names.
func (s *Situation) uses() []Use {
	all := map[input.ID]Use{}
	for id, given := range s.Entry.Inputs {
		all[id] = Use{InputStatus: inputOnRecord(id, given), Followed: true}
	}
	for _, ref := range s.Workload.Refs {
		if _, followed := all[ref.Source]; !followed {
			all[ref.Source] = Use{InputStatus: InputStatus{Input: ref.Source.String()}}
		}
	}
	for _, f := range s.Live.Findings {
		if f.ID != (input.ID{}) {
			all[f.ID] = s.found(all[f.ID], f)
		}
	}
	for _, request := range s.Live.Intent.Images {
		id := input.Image(request.Container)
		if _, known := s.Entry.Inputs[id]; !known {
			all[id] = Use{InputStatus: InputStatus{Input: id.String()}, Followed: !s.Fleet.ImagesOff, Note: "not on record"}
		}
	}
	uses := make([]Use, 0, len(all))
	for id, u := range all {
		u.Image = imageOf(u.Input, s.Live.Intent)
		u.Places, u.Hidden = s.Places[id], s.Hidden[id]
		if writer := s.Writers[id]; writer.Manager != "" {
			u.WrittenBy, u.WrittenAt = writer.Manager, known(writer.At)
		}
		uses = append(uses, u)
	}
	sorting.By(uses, func(a, b Use) int { return cmp.Compare(a.Input, b.Input) })
	return uses
}

// found adds the current state of an input.
func (s *Situation) found(u Use, f input.Finding) Use {
	u.Input, u.Followed = f.ID.String(), true
	if !f.Current.IsZero() {
		u.Current = f.Current.Short()
	}
	for _, bar := range f.Bars {
		u.Note = join(u.Note, string(bar.Reason))
		u.Undone, u.Held = u.Undone || bar.Reason == input.Undone, u.Held || bar.Reason == input.Held
	}
	if _, known := s.Entry.Inputs[f.ID]; s.Recorded && !s.Entry.TooNew && !known && f.Reason != input.Unreadable {
		u.Note = "not on record"
	}
	if _, barred := f.BarredFor(f.Reason); !barred && (f.Reason == input.Missing || f.Reason == input.Unresolved) {
		u.Note = join(u.Note, string(f.Reason))
	}
	return u
}
