package announce

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

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
			a := newAnnouncer("lockstep", nil, nil)
			w := &kube.Workload{Identity: kube.Identity{Key: kube.Key{GroupKind: kube.Deployment().GroupKind(), Namespace: "shop", Name: "web"}, Kind: kube.Deployment(), UID: "4711", ResourceVersion: "5"}}
			a.Announce(Event{About: w.Reference(), Warning: true, Reason: "Held", Action: "hold", Note: tc.note})
			r, _ := a.waiting.Next()
			if len(r.Note) > noteLimit || !utf8.ValidString(r.Note) {
				t.Errorf("%s: %d bytes, valid %t", tc.reason, len(r.Note), utf8.ValidString(r.Note))
			}
			if (r.Note != tc.note) != tc.cut || tc.cut && !strings.HasSuffix(r.Note, "...") {
				t.Errorf("%s: %q", tc.reason, r.Note)
			}
			if r.Type != corev1.EventTypeWarning || r.Regarding.APIVersion != "apps/v1" || r.Regarding.Name != "web" {
				t.Errorf("a %s event about %+v", r.Type, r.Regarding)
			}
		})
	}
}

// TestImagesAreToldApart: the library counts events of one reason about one object as
// one that repeats, and the words of the second image would be lost.
func TestImagesAreToldApart(t *testing.T) {
	t.Parallel()
	about := &corev1.ObjectReference{Kind: "Deployment", Name: "web", ResourceVersion: "7"}
	one := Event{About: about, Source: input.Image("app"), Note: "denied"}.related()
	other := Event{About: about, Source: input.Image("side"), Note: "denied"}.related()
	later := Event{About: about, Source: input.Image("app"), Note: "missing"}.related()
	if one.FieldPath != "spec.containers{app}" || *one == *other || *one == *later || about.FieldPath != "" {
		t.Errorf("%+v, %+v, %+v, of %+v", one, other, later, about)
	}
}
