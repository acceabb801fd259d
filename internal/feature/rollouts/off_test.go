package rollouts_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/rollouts"
)

// TestOff: a family that is switched off knows no kind of inputs, so that what is on record
// of them stays, and warns of each annotation that has no effect.
func TestOff(t *testing.T) {
	t.Parallel()
	off := rollouts.Off{Reason: input.ReloadOff, Advice: "switch it on", Asked: func(*kube.Workload, settings.Intent) []string {
		return []string{settings.Reload}
	}}
	got, err := off.Assess(t.Context(), &kube.Workload{}, settings.Intent{}, record.Entry{}, nil)
	if err != nil || len(got.Warnings) != 1 || len(got.Findings) != 0 || len(off.Kinds()) != 0 {
		t.Fatalf("%+v, error %v, kinds %v", got, err, off.Kinds())
	}
	want := input.Warning{Reason: input.ReloadOff, Text: "annotation lockstep.dev/reload has no effect: switch it on"}
	if got.Warnings[0] != want {
		t.Errorf("warns %+v, want %+v", got.Warnings[0], want)
	}
}
