package ask

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/cluster"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestGroups: every reason that something has to end is in a group other than in step, and none
// of another reason is.
func TestGroups(t *testing.T) {
	t.Parallel()
	want := map[input.Reason]Group{
		input.RolloutFailed: Failed, input.VersionStopped: Failed, input.InvalidAnnotation: Failed, input.Quarantined: Failed, input.ReloadFailed: Failed, input.Missing: Failed,
		input.Undone: Undone, input.Contested: Undone,
		input.Held: Held, input.Paused: Held, input.Stopped: Held,
		input.QuietWindow: Waiting, input.AwaitsTurn: Waiting, input.AwaitsWindow: Waiting, input.Damped: Waiting, input.Evicting: Waiting,
		NotOnRecord: Behind, NotWatched: Behind, input.KindOff: Behind,
		input.InStep: InStep, input.Reloaded: InStep, input.Released: InStep,
	}
	for reason, group := range want {
		ends := input.Ends(reason)
		if reason == NotWatched {
			ends = "flags"
		}
		if got := (Report{Reason: string(reason), Ends: ends}).Group(); got != group {
			t.Errorf("%s is %s, want %s", reason, got, group)
		}
	}
	for _, reason := range []input.Reason{input.Reloaded, input.PutBack, input.Refreshed} {
		if got := (Report{Reason: string(reason), From: FromEstimate}).Group(); got != Waiting {
			t.Errorf("%s is %s where it hasn't happened yet, want %s", reason, got, Waiting)
		}
		if got := (Report{Reason: string(reason), From: FromEvent}).Group(); got != InStep {
			t.Errorf("%s is %s where it has happened, want %s", reason, got, InStep)
		}
	}
	for _, e := range input.Explanations() {
		got := Report{Reason: string(e.Reason), Ends: input.Ends(e.Reason)}.Group()
		if (got == InStep) != (input.Ends(e.Reason) == "") {
			t.Errorf("%s is %s, and it ends with %q", e.Reason, got, input.Ends(e.Reason))
		}
		if !slices.Contains(Groups(), got) {
			t.Errorf("%s is %s, which isn't listed", e.Reason, got)
		}
	}
}

// TestStanding: only what the controller vouches for has a group, and what was reverted isn't in step.
func TestStanding(t *testing.T) {
	t.Parallel()
	same, other := InputStatus{Delivered: "a", Current: "a"}, InputStatus{Delivered: "a", Current: "b"}
	for name, tc := range map[string]struct {
		use   Use
		state string
		want  Group
		words string
	}{
		"InStep":    {Use{InputStatus: same, Followed: true}, Running, InStep, "in step"},
		"Down":      {Use{InputStatus: same, Followed: true}, Down, "", "in step, an estimate"},
		"Behind":    {Use{InputStatus: other, Followed: true}, Running, Behind, "not delivered"},
		"Undone":    {Use{InputStatus: same, Followed: true, Undone: true}, Running, Undone, "undone"},
		"Hidden":    {Use{InputStatus: same, Followed: true, Hidden: "forbidden"}, Running, "", NotVisible},
		"Unknown":   {Use{Followed: true}, Running, "", "no version is on record"},
		"Unrelated": {Use{InputStatus: same}, Running, "", "not followed"},
	} {
		e := Explanation{Controller: Controller{State: tc.state}, State: Report{Reason: string(input.InStep), From: FromRecord}}
		if group, words := e.Standing(&tc.use); group != tc.want || words != tc.words {
			t.Errorf("%s: %q, %q", name, group, words)
		}
	}
}

// TestTroubleFirst: the order of rows is that of groups, and then of names.
func TestTroubleFirst(t *testing.T) {
	t.Parallel()
	kind, known := kube.Kinds()[0], Known{Entries: map[kube.Key]record.Entry{}}
	for name, reason := range map[string]input.Reason{"a": input.InStep, "b": input.QuietWindow, "c": input.Held, "d": input.Undone, "e": input.RolloutFailed, "f": input.Held} {
		key := kube.Key{GroupKind: kind.GroupKind(), Namespace: "shop", Name: name}
		known.Workloads = append(known.Workloads, cluster.Header{Key: key, Kind: kind, UID: name, Annotations: map[string]string{settings.Reload: "auto"}})
		known.Entries[key] = record.Entry{UID: name, Decision: record.Decision{Reason: reason}}
	}
	var got []string
	for _, row := range StatusOf(known) {
		got = append(got, strings.TrimPrefix(row.Workload, "deployment/"))
	}
	if want := []string{"e", "d", "c", "f", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// TestReference: the reference has the place that an address names.
func TestReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range input.Explanations() {
		_, anchor, _ := strings.Cut(Reference(string(e.Reason)), "/blob/main/docs/reference/reasons.md#")
		if anchor == "" || !strings.Contains(string(page), `<a id="`+anchor+`"></a>`) {
			t.Errorf("%s leads to %q", e.Reason, Reference(string(e.Reason)))
		}
	}
	for _, word := range []string{"", NotOnRecord, "Scaled", "../x"} {
		if got := Reference(word); got != "" {
			t.Errorf("%q leads to %s", word, got)
		}
	}
}
