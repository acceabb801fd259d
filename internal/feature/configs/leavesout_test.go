package configs_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestAssessLeavesOut: sources that the workload leaves out aren't followed by a pattern, and
// don't count.
func TestAssessLeavesOut(t *testing.T) {
	t.Parallel()
	wanted := input.ConfigMap("c-wanted")
	all := []*kube.Source{source(wanted, "new")}
	for i := range input.MaxInputs + 44 {
		all = append(all, source(input.ConfigMap(fmt.Sprintf("c-%03d", i)), "1"))
	}
	view := sorted{clusterOf(all...)}
	got := assess(t, inputs(view), reload("configmap/c-*, configmap/c-001, !configmap/c-0*, !configmap/c-1*, !configmap/c-2*, !configmap/c-3*"), given(map[input.ID]string{wanted: "old"}), &history{})
	if diff := cmp.Diff(map[input.ID]input.Reason{wanted: input.Changed}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
