package announce

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Event is something that people see on an object with kubectl describe.
type Event struct {
	About *corev1.ObjectReference
	// Warning is true when a person has to do something.
	Warning bool
	Reason  string
	// Action is the verb, for machines.
	Action string
	Note   string
	// Source is what led to it, as it was at SourceVersion; zero when nothing did.
	// Without it, events on a workload that is not written to in between (observed,
	// held, refreshed) would be counted as one that repeats, with the first note.
	Source        input.ID
	SourceVersion string
}

// ActionHold is the action of an event about a change that something forbids. It is told
// again and again, because a person has to do something.
const ActionHold = "hold"

// ActionWarn is the action of a warning beside a decision. It tells the two apart when they
// have the same reason: events that differ in nothing else count as one that repeats, and
// only the first would be read.
const ActionWarn = "warn"

// An Announcer publishes events.
type Announcer struct {
	recorder events.EventRecorder
}

// NewAnnouncer makes an Announcer that publishes through the recorder.
func NewAnnouncer(r events.EventRecorder) *Announcer {
	return &Announcer{recorder: r}
}

// noteLimit is what the API server takes.
const noteLimit = 1024

// Announce publishes the event in the background. An event that cannot be
// written is dropped: the same words are in the log.
func (a *Announcer) Announce(e Event) {
	a.recorder.Eventf(e.About, e.related(), eventType(e.Warning), e.Reason, e.Action, "%s", shortNote(e.Note))
}

func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// shortNote cuts a note that the API server would refuse.
func shortNote(note string) string {
	if len(note) <= noteLimit {
		return note
	}
	// Half a character would be written as a longer one.
	return strings.ToValidUTF8(note[:noteLimit-3], "") + "..."
}

// related is the source as events name it, nil when there is none. An image is no object:
// its container is named as the kubelet does, and the note stands for its version.
func (e Event) related() runtime.Object {
	if e.Source.Kind == input.KindImage {
		container := *e.About
		sum := sha256.Sum256([]byte(e.Note))
		container.FieldPath, container.ResourceVersion = "spec.containers{"+e.Source.Name+"}", hex.EncodeToString(sum[:4])
		return &container
	}
	if !e.Source.IsSource() {
		return nil
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: string(e.Source.Kind),
		Namespace: e.About.Namespace, Name: e.Source.Name, ResourceVersion: e.SourceVersion,
	}
}

// Silent announces nothing, for a process that has no permission to write events.
type Silent struct{}

// Announce implements what an Announcer does.
func (Silent) Announce(Event) {}
