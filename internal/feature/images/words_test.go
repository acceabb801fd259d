package images

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// TestWarnings: a rollout that failed and stays is told with the reason, one that is put
// back by the decision itself, and the answer of a registry with the annotation.
func TestWarnings(t *testing.T) {
	t.Parallel()
	ours := "app:1.2@" + digest("2")
	cases := map[string]struct {
		reason string
		change func(*Observation)
		answer answer
		want   []string // a reason and a part of the text each
	}{
		"Nothing":     {reason: "all is well", change: given("2")},
		"Mixed":       {reason: "configuration came with it", change: both(failing, func(o *Observation) { o.Trial.Mixed = true }), want: []string{"RolloutFailed configuration was delivered together with it"}},
		"NoneHealthy": {reason: "there is nothing to put back", change: both(failing, func(o *Observation) { o.Memo.Healthy = Pin{} }), want: []string{"RolloutFailed Lockstep doesn't know a digest that was healthy for this workload"}},
		"PutBack":     {reason: "the decision tells of it", change: failing},
		"Next":        {reason: "so does that to try another one", change: both(failing, func(o *Observation) { o.Found = pin("1.3", "3") })},
		"Registry":    {reason: "the registry refused", change: given("2"), answer: answer{problem: "401"}, want: []string{"Unresolved annotation image.lockstep.dev/web: 401; the image stays as it is"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observation(t, ours, tc.change)
			got := warnings(o, Decide(o), tc.answer)
			if len(got) != len(tc.want) {
				t.Fatalf("%s: %+v, want %q", tc.reason, got, tc.want)
			}
			for i, want := range tc.want {
				reason, text, _ := strings.Cut(want, " ")
				if string(got[i].Reason) != reason || !strings.Contains(got[i].Text, text) || got[i].About != input.Image("web") {
					t.Errorf("%s: %+v, want %q", tc.reason, got[i], want)
				}
			}
		})
	}
}
