package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/sorting"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
	"github.com/lockstep-dev/lockstep/internal/feature/images"
)

// ImageExplanation lists the containers that follow an image, as far as the record, annotations
// and events tell. No registry is asked.
type ImageExplanation struct {
	// Namespace is empty for all of them.
	Namespace string `json:"namespace,omitempty"`
	// Image is the repository, with the tags if only they are meant.
	Image      string     `json:"image"`
	Controller Controller `json:"controller"`
	Stops      []Stop     `json:"stops,omitempty"`
	// Containers are those that aren't in step first.
	Containers []ImageUse `json:"containers,omitempty"`
	// Events are Lockstep's events about these images, oldest first.
	Events []Event `json:"events,omitempty"`
	// Notes list what could not be read.
	Notes []string `json:"notes,omitempty"`
	// RecordHidden and EventsHidden are true when the caller has no permission to read the record or
	// the events.
	RecordHidden bool `json:"recordHidden,omitempty"`
	EventsHidden bool `json:"eventsHidden,omitempty"`
}

// ImageUse is a container that follows the image.
type ImageUse struct {
	InputStatus

	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Container string `json:"container"`
	// Spec is the annotation: the repository and the wanted tags.
	Spec  string `json:"spec"`
	State Report `json:"state"`
	// Digest is the delivered digest in full, empty when none is on record, and Tag its tag, empty
	// when that isn't known.
	Digest string `json:"digest,omitempty"`
	Tag    string `json:"tag,omitempty"`
	// Problem is what kept the registry from answering, or what it refused, by the last event that
	// the API server still has and that no answer followed. It may be over.
	Problem *Event `json:"problem,omitempty"`
	// Quarantined are the beginnings of digests whose rollout failed here, the last one at the end.
	Quarantined []string `json:"quarantined,omitempty"`
	// Contested is true when another writer keeps restoring its image.
	Contested bool `json:"contested,omitempty"`
	// Healthy is the tag and digest with which the workload was last healthy.
	Healthy string `json:"healthy,omitempty"`
}

// Image lists the containers that follow a repository, such as "registry.example/app", or some of
// its tags, such as "registry.example/app:1.4.*". The namespace is empty for all of them.
func (r *Reader) Image(ctx context.Context, namespace, image string) (ImageExplanation, error) {
	wanted, err := wantedImage(image)
	if err != nil {
		return ImageExplanation{}, err
	}
	heard, stored, err := r.Heard(ctx, namespace)
	if err != nil {
		return ImageExplanation{}, err
	}
	workloads, notes, err := r.headers(ctx, Scope{Namespace: namespace}, kube.AllKinds(r.Kinds, heard.Serves.Kinds))
	if err != nil {
		return ImageExplanation{}, err
	}
	known := Known{Workloads: workloads, Serves: heard.Serves}
	e := ImageExplanation{
		Namespace: namespace, Image: image, Controller: ControllerOf(&heard, r.Now()), Stops: heard.StopsIn(namespace),
		Notes: notes, RecordHidden: heard.RecordProblem != nil,
	}
	if !e.RecordHidden {
		known.Entries, known.Failures = stored.Entries, stored.Failures
	}
	known.Events, err = announce.ReportedIn(ctx, r.Client, namespace)
	e.Notes = append(e.Notes, heard.unread("the record", byEvents(err))...)
	if err != nil {
		e.EventsHidden, e.Notes = true, append(e.Notes, err.Error())
	}
	e.Containers, e.Events = known.imageUses(wanted)
	return e, ctx.Err()
}

// Problem is the newest problem of the containers with the registry, nil without one.
func (e *ImageExplanation) Problem() *Event {
	var last *Event
	for _, u := range e.Containers {
		if u.Problem != nil && (last == nil || u.Problem.At.After(last.At)) {
			last = u.Problem
		}
	}
	return last
}

// isAnswered reports whether the record or an event shows a digest, which only the registry knows.
func (e *ImageExplanation) isAnswered() bool {
	return slices.ContainsFunc(e.Containers, func(u ImageUse) bool { return u.Digest != "" || !u.InStep() }) ||
		slices.ContainsFunc(e.Events, Event.isAnswer)
}

// isAnswer reports whether an event about an image shows that the registry has answered.
func (e Event) isAnswer() bool {
	switch input.Reason(e.Reason) {
	case input.Unresolved, input.ImagesOff, input.KindOff, input.InvalidAnnotation, input.Following, input.ReleasedByHand, input.RolledByHand:
		return false
	default:
		return true
	}
}

// wantedImage reports whether a request is for the image.
func wantedImage(text string) (func(tagspec.Image) bool, error) {
	if image, err := tagspec.ParseImage(text); err == nil {
		return func(other tagspec.Image) bool {
			return other.Repository.String() == image.Repository.String() && other.Spec.String() == image.Spec.String()
		}, nil
	}
	image, err := tagspec.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("read the image: %w", err)
	}
	return func(other tagspec.Image) bool { return other.Repository.String() == image.Repository.String() }, nil
}

// imageUses are the containers that follow an image, and the events about it.
func (k Known) imageUses(wanted func(tagspec.Image) bool) (all []ImageUse, events []Event) {
	states := map[string]Report{}
	for _, row := range StatusOf(k) {
		states[row.Namespace+"/"+row.Workload] = row.State
	}
	for _, w := range k.Workloads {
		words := k.Serves.Words(settings.Defaults{})
		for _, request := range words.Intent(w.Annotations, nil).Images {
			if !wanted(request.Image) {
				continue
			}
			use := ImageUse{
				Namespace: w.Key.Namespace, Workload: w.Kind.Name() + "/" + w.Key.Name, Container: request.Container, Spec: request.Image.String(),
			}
			use.State = states[use.Namespace+"/"+use.Workload]
			use.recorded(k, w, request.Image.Spec)
			told := about(k.Events[w.UID], request)
			use.Problem = lastProblem(told)
			all, events = append(all, use), append(events, told...)
		}
	}
	sorting.By(all, func(a, b ImageUse) int {
		return cmp.Or(compareStates(&a.State, &b.State), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Container, b.Container))
	})
	sorting.By(events, func(a, b Event) int { return a.At.Compare(b.At) })
	return all, events
}

// recorded adds what is on record of the container's image.
func (u *ImageUse) recorded(k Known, w cluster.Header, wanted tagspec.Spec) {
	id := input.Image(u.Container)
	u.Input = id.String()
	entry, _ := k.entry(w)
	given, found := entry.Inputs[id]
	if u.Image = u.Spec; !found {
		if u.State.IsInStep() { // the workload's other inputs are
			u.State = Report{Reason: NotOnRecord, Message: "no digest is on record", Ends: input.Ends(input.Unresolved), From: FromRecord}
		}
		return
	}
	u.InputStatus = inputOnRecord(id, given)
	u.Image = u.Spec
	memo := images.ParseMemo(given.Memo)
	if !given.Version.IsZero() {
		u.Digest = given.Version.String()
		if u.Tag, _ = wanted.Exact(); memo.Healthy.Digest == u.Digest {
			u.Tag = memo.Healthy.Tag
		}
	}
	u.Quarantined, u.Contested = memo.Bad, memo.Contested
	if memo.Healthy != (images.Pin{}) {
		u.Healthy = memo.Healthy.Tag + "@" + memo.Healthy.Digest
	}
}

// about are the events of a workload that concern the image of a container: they name its
// annotation or the container.
func about(told []announce.Reported, request settings.ImageRequest) []Event {
	var all []Event
	id := input.Image(request.Container).String()
	for _, t := range told {
		words := strings.FieldsFunc(t.Note, func(r rune) bool { return strings.ContainsRune(" ,;:()", r) })
		if slices.Contains(words, id) || slices.Contains(words, request.Key()) {
			all = append(all, eventOf(t))
		}
	}
	return all
}

// lastProblem is the newest event about a registry that didn't answer, nil without one or when a
// digest was delivered since.
func lastProblem(events []Event) *Event {
	var last *Event
	for i, e := range events {
		if slices.Contains([]input.Reason{input.Unresolved, input.Reloaded, input.WouldReload}, input.Reason(e.Reason)) && (last == nil || !e.At.Before(last.At)) {
			last = &events[i]
		}
	}
	if last == nil || last.Reason != string(input.Unresolved) {
		return nil
	}
	return last
}
