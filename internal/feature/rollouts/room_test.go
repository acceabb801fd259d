package rollouts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// TestNothingIsGivenWithoutRoom: a workload that has no room on the record is not moved,
// people are told once, and it is moved when there is room.
func TestNothingIsGivenWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.full = "the record is full"
	l := s.loop()
	for range 2 {
		result, err := l.Reconcile(t.Context(), s.workload.Key)
		if err != nil || result.RequeueAfter != roomCheck {
			t.Errorf("looked at again after %s, error %v; want after %s", result.RequeueAfter, err, roomCheck)
		}
	}
	if s.kept != 0 {
		t.Error("room is kept after the look at the workload is over")
	}
	if len(s.moved) != 0 || s.recorded != 0 {
		t.Errorf("moved %d times, %d entries; want nothing", len(s.moved), s.recorded)
	}
	if len(s.told) != 1 || s.told[0].Reason != string(input.RecordFull) || !s.told[0].Warning || !strings.Contains(s.told[0].Note, s.full) {
		t.Errorf("told %+v, want the warning RecordFull once", s.told)
	}
	s.full = ""
	if _, err := l.Reconcile(t.Context(), s.workload.Key); err != nil || len(s.moved) != 1 {
		t.Errorf("moved %d times, error %v; want once now that there is room", len(s.moved), err)
	}
	if s.secured != 1 || s.kept != 0 {
		t.Errorf("room was reserved %d times when the patch was sent, and %d times after the look; want once and not at all", s.secured, s.kept)
	}
}

// TestNoRoomForWhatCannotBeJudgedYet: what the record has to take is known when the
// workload's controller has acted.
func TestNoRoomForWhatCannotBeJudgedYet(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.full, s.findings = "the record is full", []input.Finding{{Reason: input.GenerationNotObserved}}
	if _, err := s.loop().Reconcile(t.Context(), s.workload.Key); err != nil || len(s.told) != 0 {
		t.Errorf("told %+v, error %v; want nothing yet", s.told, err)
	}
}

// TestCountsOfGoneNamespaces: a thousand namespaces that are gone leave no series
// behind, and one that is there keeps its own.
func TestCountsOfGoneNamespaces(t *testing.T) {
	t.Parallel()
	s := newScene()
	l := s.loop()
	s.workload.Annotations = map[string]string{settings.Reload: "auto"}
	for i := range 1000 {
		s.workload.Key.Namespace = fmt.Sprint("gone-", i)
		s.entry = nil
		if _, err := l.Reconcile(t.Context(), s.workload.Key); err != nil {
			t.Fatal(err)
		}
	}
	s.workload.Key.Namespace, s.full, s.entry = "here", "the record is full", nil
	if _, err := l.Reconcile(t.Context(), s.workload.Key); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lockstep_reloads_total", "lockstep_inputs_given_total"} {
		if n := s.series(t, name); n != 1000 {
			t.Fatalf("%d series of %s, want 1000", n, name)
		}
	}
	l.ForgetNamespaces(func(namespace string) bool { return namespace == "here" })
	if n := s.series(t, "lockstep_inputs_given_total"); n != 0 {
		t.Errorf("%d series of inputs, want none of namespaces that are gone", n)
	}
	if reloads, invalid := s.series(t, "lockstep_reloads_total"), s.series(t, "lockstep_invalid_settings_total"); reloads != 0 || invalid != 1 {
		t.Errorf("%d series of reloads, %d of settings; want none of namespaces that are gone, one of the other", reloads, invalid)
	}
}

// series is how many series a metric has.
func (s *scene) series(t *testing.T, name string) int {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}
