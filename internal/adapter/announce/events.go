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

// Event is an event on an object, as shown by kubectl describe.
type Event struct {
	About *corev1.ObjectReference
	// Warning is true when a user has to act.
	Warning bool
	Reason  string
	// Action is the verb, for machines.
	Action string
	Note   string
	// Source is the cause of the event, at SourceVersion; zero without one. Without it, the API
	// would count events on a workload that isn't written in between (observed, held, refreshed)
	// as one repeating event with the first note.
	Source        input.ID
	SourceVersion string
}

// ActionHold is the action of an event about a blocked change. It is repeated regularly, because
// a user has to act.
const ActionHold = "hold"

// ActionWarn is the action of a warning beside a decision. It distinguishes the two when they
// have the same reason: otherwise equal events count as one repeating event, and only the first
// would be shown.
const ActionWarn = "warn"

// An Announcer publishes events.
type Announcer struct {
	recorder events.EventRecorder
}

// NewAnnouncer makes an Announcer that publishes through the recorder.
func NewAnnouncer(r events.EventRecorder) *Announcer {
	return &Announcer{recorder: r}
}

// noteLimit is the API server's limit.
const noteLimit = 1024

// Announce publishes the event in the background. An event that cannot be written is dropped:
// the log contains the same text.
func (a *Announcer) Announce(e Event) {
	a.recorder.Eventf(e.About, e.related(), eventType(e.Warning), e.Reason, e.Action, "%s", shortNote(e.Note))
}

func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// shortNote truncates a note that the API server would refuse.
func shortNote(note string) string {
	if len(note) <= noteLimit {
		return note
	}
	// A truncated character would be encoded as a longer one.
	return strings.ToValidUTF8(note[:noteLimit-3], "") + "..."
}

// related is the source's reference in events, nil without a source. An image isn't an object:
// its container is named as the kubelet does, and a digest of the note replaces the version.
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

// Silent drops events, for a process without permission to write them.
type Silent struct{}

// Announce does nothing.
func (Silent) Announce(Event) {}
