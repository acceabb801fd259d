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
	"github.com/lockstep-dev/lockstep/internal/feature/follow"
)

// NotVisible stands for what the caller has no permission to read.
const NotVisible = "not visible to you"

// Explanation is why a workload is where it is.
type Explanation struct {
	Namespace  string     `json:"namespace"`
	Workload   string     `json:"workload"`
	Controller Controller `json:"controller"`
	State      Report     `json:"state"`
	// Meaning is what the reason means, as in the reference.
	Meaning string `json:"meaning,omitempty"`
	// Estimate is what follows from what can be read now, where the controller has not said
	// so yet.
	Estimate *Report `json:"estimate,omitempty"`
	// Settings are the annotations that ask for it.
	Settings []Setting `json:"settings,omitempty"`
	Inputs   []Use     `json:"inputs,omitempty"`
	// Warnings are what was told besides, and stops nothing.
	Warnings []Event `json:"warnings,omitempty"`
	// Events are what Lockstep told, oldest first.
	Events []Event `json:"events,omitempty"`
	// Notes say what could not be read.
	Notes []string `json:"notes,omitempty"`
}

// Setting is an annotation of Lockstep.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// On is "workload" or "namespace".
	On string `json:"on"`
}

// Use is one input, and how the workload uses it.
type Use struct {
	InputStatus

	// Followed is true when a change of it leads to a rollout.
	Followed bool `json:"followed"`
	// Hidden says why the current version cannot be read; it is then the one on record.
	Hidden string `json:"hidden,omitempty"`
	// Places are where the pod template names it.
	Places []string `json:"places,omitempty"`
	// ChangedBy and ChangedAt are who wrote its content last, as far as its managed fields
	// tell.
	ChangedBy string     `json:"changedBy,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
	// Note is what stands in its way.
	Note string `json:"note,omitempty"`
}

// Situation is what was read about one workload.
type Situation struct {
	Workload   *kube.Workload
	Namespace  *kube.Namespace
	Controller Controller
	// Entry is what is on record. Recorded is true when there is one, Readable when the
	// caller may read the record at all.
	Entry              record.Entry
	Recorded, Readable bool
	Events             []announce.Reported
	// Unwritable is what was told of the part of the record that the workload belongs into.
	Unwritable []announce.Reported
	// Live is what can be seen now, and Hidden what cannot.
	Live   follow.Observation
	Hidden map[input.ID]string
	// Places are where the template names its sources, and Writers who wrote them.
	Places  map[input.ID][]string
	Writers map[input.ID]kube.Writer
	// Serves is what the controller looks at.
	Serves Serves
	// Unread say what else could not be read.
	Unread []string
}

// Explain says why a workload is where it is.
func Explain(s Situation) Explanation {
	w := s.Workload
	e := Explanation{
		Namespace: w.Key.Namespace, Workload: w.Kind.Name() + "/" + w.Key.Name, Controller: s.Controller,
		State: s.state(), Estimate: s.estimate(), Settings: s.settings(), Inputs: s.uses(), Notes: s.Unread,
	}
	if hold := s.Live.Hold(); hold != "" && e.State.Reason != string(input.Held) {
		e.Notes = append(slices.Clone(e.Notes), "it is "+hold+": a change waits until that ends")
	}
	e.Meaning = input.MeaningOf(input.Reason(e.State.Reason))
	if e.State.IsInStep() && (s.Live.Intent.Observe || s.Serves.Observe) {
		e.Meaning = "It is only observed: what exists counts as given, and Lockstep restarts no pod for it."
	}
	for _, t := range s.Events {
		switch {
		case s.Serves.isPast(t.Reason):
		case t.IsWarning():
			e.Warnings = append(e.Warnings, eventOf(t))
		case t.IsDecision():
			e.Events = append(e.Events, eventOf(t))
		}
	}
	for _, t := range s.Unwritable {
		e.Warnings = append(e.Warnings, eventOf(t))
	}
	return e
}

// state is what the controller decided: what is on record; where that cannot be read, or has
// no room for it, the newest event; and only where neither says anything, an estimate. What the
// controller does not look at stands above all of them.
func (s Situation) state() Report {
	intent := s.Live.Intent
	return s.Serves.State(s.told(), s.Workload.Key.Namespace, intent.Mode == settings.Follow || hasSource(s.Entry), len(intent.Images) > 0)
}

func (s Situation) told() Report {
	if s.Recorded {
		return onRecord(s.Entry)
	}
	told, ok := toldBy(s.Events)
	if ok && told.standsFor(s.Readable) {
		return told
	}
	live := s.live()
	if s.Readable && live.Reason == string(input.Baseline) {
		return Report{Reason: NotOnRecord, Message: "no controller has looked at it yet", Ends: firstLook, From: FromEstimate}
	}
	return live
}

// live is what the controller's own decision says of what can be read now.
func (s Situation) live() Report {
	d := follow.Decide(s.Live)
	return Report{Reason: string(d.Reason), Message: d.Message, Ends: input.Ends(d.Reason), From: FromEstimate}
}

// estimate tells of a change that the controller has not put on record: of an input, or of
// what a person has set.
func (s Situation) estimate() *Report {
	changed := func(f input.Finding) bool {
		return f.Standing == input.Due && s.Entry.Inputs[f.ID].Due != f.Current.Short()
	}
	if s.state().Reason == NotOnRecord {
		live := s.live()
		return &live
	}
	if !s.Recorded || s.Entry.TooNew || s.state().From == FromFlags || !slices.ContainsFunc(s.Live.Findings, changed) && !s.isSetAnew() {
		return nil
	}
	live := s.live()
	if live.Reason == string(input.QuietWindow) && live.Reason == s.state().Reason {
		return nil // it waits for the end of changes, and each is put on record within a minute
	}
	return &live
}

// isSetAnew reports whether the state on record is what a person had set, and is not what is
// set now. What cannot be read may be the reason of a difference too.
func (s Situation) isSetAnew() bool {
	reason := s.state().Reason
	bySettings := slices.Contains([]input.Reason{input.Held, input.InvalidAnnotation, input.Paused}, input.Reason(reason))
	return bySettings && len(s.Hidden) == 0 && s.live().Reason != reason
}

// settings are the annotations of the workload and of its namespace.
func (s Situation) settings() []Setting {
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
func (s Situation) uses() []Use {
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
	uses := make([]Use, 0, len(all))
	for id, u := range all {
		u.Places, u.Hidden = s.Places[id], s.Hidden[id]
		if writer := s.Writers[id]; writer.Manager != "" {
			u.ChangedBy, u.ChangedAt = writer.Manager, known(writer.At)
		}
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b Use) int { return cmp.Compare(a.Input, b.Input) })
	return uses
}

// found adds what can be seen of an input now.
func (s Situation) found(u Use, f input.Finding) Use {
	u.Input, u.Followed = f.ID.String(), true
	if !f.Current.IsZero() {
		u.Current = f.Current.Short()
	}
	for _, bar := range f.Bars {
		u.Note = join(u.Note, string(bar.Reason))
	}
	if _, known := s.Entry.Inputs[f.ID]; s.Recorded && !s.Entry.TooNew && !known && f.Reason != input.Unreadable {
		u.Note = "not on record"
	}
	if _, barred := f.BarredFor(f.Reason); !barred && (f.Reason == input.Missing || f.Reason == input.Unresolved) {
		u.Note = join(u.Note, string(f.Reason))
	}
	return u
}
