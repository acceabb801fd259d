package announce

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// told keeps the last event.
type told struct {
	regarding  *corev1.ObjectReference
	kind, note string
}

//nolint:revive // The signature is that of client-go's recorder.
func (r *told) Eventf(regarding, _ runtime.Object, kind, _, _, note string, args ...any) {
	r.regarding, r.kind, r.note = regarding.(*corev1.ObjectReference), kind, args[0].(string)
	if note != "%s" {
		panic("the note is used as a format")
	}
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		note   string
		cut    bool
	}{
		"Short":         {"as it is", "rolled out configmap/app", false},
		"Percent":       {"a note is no format", "100%s done", false},
		"Longest":       {"as much as the API server takes", strings.Repeat("x", noteLimit), false},
		"TooLong":       {"the API server would refuse it", strings.Repeat("x", noteLimit+1), true},
		"CutCharacter":  {"a character is not cut in two, which would make the note longer again", strings.Repeat("ü", noteLimit), true},
		"CutCharacter2": {"at whatever byte it begins", "x" + strings.Repeat("ü", noteLimit), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r told
			w := &kube.Workload{Identity: kube.Identity{Key: kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: "shop", Name: "web"}, Kind: kube.Deployment(), UID: "4711", ResourceVersion: "5"}}
			NewAnnouncer(&r).Announce(Event{About: w.Reference(), Warning: true, Reason: "Held", Action: "hold", Note: tc.note})
			if len(r.note) > noteLimit || !utf8.ValidString(r.note) {
				t.Errorf("%s: %d bytes, valid %t", tc.reason, len(r.note), utf8.ValidString(r.note))
			}
			if (r.note != tc.note) != tc.cut || tc.cut && !strings.HasSuffix(r.note, "...") {
				t.Errorf("%s: %q", tc.reason, r.note)
			}
			if r.kind != corev1.EventTypeWarning || r.regarding.APIVersion != "apps/v1" || r.regarding.Name != "web" {
				t.Errorf("a %s event about %+v", r.kind, r.regarding)
			}
		})
	}
}

// TestImagesAreToldApart: the library counts events of one reason about one object as
// one that repeats, and the words of the second image would be lost.
func TestImagesAreToldApart(t *testing.T) {
	t.Parallel()
	about := &corev1.ObjectReference{Kind: "Deployment", Name: "web", ResourceVersion: "7"}
	one := Event{About: about, Source: input.Image("app"), Note: "denied"}.related().(*corev1.ObjectReference)
	other := Event{About: about, Source: input.Image("side"), Note: "denied"}.related().(*corev1.ObjectReference)
	later := Event{About: about, Source: input.Image("app"), Note: "missing"}.related().(*corev1.ObjectReference)
	if one.FieldPath != "spec.containers{app}" || *one == *other || *one == *later || about.FieldPath != "" {
		t.Errorf("%+v, %+v, %+v, of %+v", one, other, later, about)
	}
}
