package ask

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestImageUses: a repository is found however it is written, with what the record and events say
// of the container.
func TestImageUses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	kind := kube.Kinds()[0]
	workload := func(name string, images map[string]string) cluster.Header {
		annotations := map[string]string{}
		for container, spec := range images {
			annotations[settings.ImagePrefix+container] = spec
		}
		return cluster.Header{Key: kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: name}, Kind: kind, UID: name, Annotations: annotations}
	}
	a, b := workload("a", map[string]string{"app": "nginx:1.4.*", "side": "other/app:1"}), workload("b", map[string]string{"web": "docker.io/library/nginx:latest"})
	delivered := fingerprint.Version{Basis: "sha256", Sum: strings.Repeat("ab", 32)}
	known := Known{
		Workloads: []cluster.Header{a, b},
		Entries: map[kube.Key]record.Entry{
			b.Key: {UID: "b", Decision: record.Decision{Reason: input.Quarantined}, Inputs: map[input.ID]record.Delivered{
				input.Image("web"): {Version: delivered, Due: "77ab01c9de", Memo: "ok=1.3@" + strings.Repeat("cd", 32) + ";bad=77ab01c9de0011223344;contested"},
			}},
		},
		Events: map[string][]announce.Reported{"a": {
			{At: now, Reason: string(input.Unresolved), By: announce.Reporter, Action: announce.ActionWarn, Note: "annotation image.lockstep.dev/app: the registry refuses; the image stays as it is"},
			{At: now, Reason: string(input.Unresolved), By: announce.Reporter, Action: announce.ActionWarn, Note: "annotation image.lockstep.dev/side: no such tag"},
		}},
	}
	for image, want := range map[string][]string{
		"nginx":                       {"b/web", "a/app"},
		"docker.io/library/nginx":     {"b/web", "a/app"},
		"nginx:1.4.*":                 {"a/app"},
		"nginx@" + delivered.String(): {"b/web", "a/app"},
		"other/app:1":                 {"a/side"},
		"other/app:2":                 nil,
	} {
		wanted, err := wantedImage(image)
		if err != nil {
			t.Fatal(err)
		}
		uses, _ := known.imageUses(wanted)
		var got []string
		for _, u := range uses {
			got = append(got, strings.TrimPrefix(u.Workload, "deployment/")+"/"+u.Container)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is followed by %v, want %v", image, got, want)
		}
	}
	wanted, _ := wantedImage("nginx")
	uses, events := known.imageUses(wanted)
	if u := uses[0]; u.Digest != delivered.String() || u.Current != "77ab01c9de" || !slices.Equal(u.Quarantined, []string{"77ab01c9de0011223344"}) || !u.Contested || !strings.HasPrefix(u.Healthy, "1.3@sha256:cdcd") || u.State.Group() != Failed {
		t.Errorf("of what is on record: %+v", u)
	}
	if u := uses[1]; u.Problem == nil || !strings.Contains(u.Problem.Note, "the registry refuses") || len(events) != 1 {
		t.Errorf("the problem is %+v, and the events are %v", u.Problem, events)
	}
	if u := uses[1]; u.State.Reason != NotOnRecord || u.Tag != "" || uses[0].Tag != "latest" {
		t.Errorf("an image that isn't on record is %+v", u)
	}
	for _, row := range StatusOf(known) {
		for _, i := range row.Inputs {
			if want := "docker.io/library/nginx:latest"; i.Image != want {
				t.Errorf("%s of %s follows %q, want %q", i.Input, row.Workload, i.Image, want)
			}
		}
	}
	if _, err := wantedImage("<script>"); err == nil {
		t.Error("no image is taken for one")
	}
}

// TestRegistryWasAsked: that there was no problem is only said where the registry has answered.
func TestRegistryWasAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		use   ImageUse
		event string
		asked bool
	}{
		"Never":     {ImageUse{State: Report{Reason: "NotOnRecord"}}, "", false},
		"Off":       {ImageUse{State: Report{Reason: "ImagesOff"}}, "ImagesOff", false},
		"Delivered": {ImageUse{Digest: "sha256:aaa"}, "", true},
		"Due":       {ImageUse{InputStatus: InputStatus{Delivered: "unknown", Current: "bbb222"}}, "", true},
		"Event":     {ImageUse{}, "Pinned", true},
	} {
		e := ImageExplanation{Containers: []ImageUse{tc.use}}
		if tc.event != "" {
			e.Events = []Event{{Reason: tc.event}}
		}
		if got := strings.Contains(e.RegistryWords(time.Time{}), "don't report a problem"); got != tc.asked {
			t.Errorf("%s: %s", name, e.RegistryWords(time.Time{}))
		}
	}
}

// TestRegistryThatIsDown: the state on record counts without events, and what can't be read isn't denied.
func TestRegistryThatIsDown(t *testing.T) {
	t.Parallel()
	down := ImageUse{Digest: "sha256:aaa", State: Report{Reason: string(input.Unresolved), Message: "connection refused"}}
	for name, tc := range map[string]struct {
		e    ImageExplanation
		want string
	}{
		"Down":   {ImageExplanation{Containers: []ImageUse{down}}, "Unresolved: connection refused"},
		"Hidden": {ImageExplanation{EventsHidden: true}, "its answer is " + NotVisible},
	} {
		if got := tc.e.RegistryWords(time.Time{}); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestProblemIsOver: a delivered digest is an answer of the registry, and what is only told again isn't.
func TestProblemIsOver(t *testing.T) {
	t.Parallel()
	at := func(minute int, reason input.Reason) Event {
		return Event{At: time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC), Reason: string(reason)}
	}
	for name, tc := range map[string]struct {
		events []Event
		want   bool
	}{
		"Over":      {[]Event{at(1, input.Unresolved), at(2, input.Reloaded)}, false},
		"Again":     {[]Event{at(1, input.Unresolved), at(2, input.Reloaded), at(3, input.Unresolved)}, true},
		"ToldAgain": {[]Event{at(1, input.Unresolved), at(2, input.Held)}, true},
		"Never":     {[]Event{at(1, input.Reloaded)}, false},
	} {
		if got := lastProblem(tc.events) != nil; got != tc.want {
			t.Errorf("%s: a problem: %t", name, got)
		}
	}
}
