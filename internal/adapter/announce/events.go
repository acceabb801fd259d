package announce

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Event is an event on an object, as shown by kubectl describe.
type Event struct {
	About *corev1.ObjectReference
	// By is the component that reports it, empty for the announcer's own name.
	By string
	// Warning is true when a user has to act.
	Warning bool
	Reason  string
	// Action is the verb, for machines.
	Action string
	Note   string
	// Source is the cause of the event, at SourceVersion; zero without one.
	Source        input.ID
	SourceVersion string
	// Change is the version of an input that the event is about, zero without one. Messages
	// about one change are joined.
	Change input.Change
}

// ActionHold is the action of an event about a blocked change. It is repeated regularly, because
// a user has to act.
const ActionHold = "hold"

// ActionWarn is the action of a warning beside a decision. It distinguishes the two when they
// have the same reason.
const ActionWarn = "warn"

// noteLimit is the API server's limit.
const noteLimit = 1024

func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// ShortNote truncates a note that the API server would refuse.
func ShortNote(note string) string {
	if len(note) <= noteLimit {
		return note
	}
	// A truncated character would be encoded as a longer one.
	return strings.ToValidUTF8(note[:noteLimit-3], "") + "..."
}

// related is the source's reference in events, nil without a source. An image isn't an object:
// its container is named as the kubelet does, and a digest of the note replaces the version.
func (e Event) related() *corev1.ObjectReference {
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

// RepeatEvery is how often a warning about a waiting change is repeated. By default the API
// server keeps events for an hour.
const RepeatEvery = 30 * time.Minute

// warningName is the same for the same text about the same object. When the API server has
// dropped the event, it is written again; a warning about a waiting change is repeated earlier.
func warningName(e *eventsv1.Event) string {
	words := string(e.Regarding.UID) + "\x00" + e.Reason + "\x00" + e.Note
	if e.Action == ActionHold {
		words += "\x00" + e.EventTime.Truncate(RepeatEvery).UTC().String()
	}
	sum := sha256.Sum256([]byte(words))
	digest := hex.EncodeToString(sum[:8])
	if len(e.Regarding.Name)+len(digest) >= validation.DNS1123SubdomainMaxLength {
		return digest // The API server would refuse a longer name.
	}
	return e.Regarding.Name + "." + digest
}
