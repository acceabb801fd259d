package ask

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/installation"
	"github.com/lockstep-dev/lockstep/internal/adapter/kube"
	"github.com/lockstep-dev/lockstep/internal/core/spread"
)

// TestPlannedSpread: the plan counts as the controller would.
func TestPlannedSpread(t *testing.T) {
	t.Parallel()
	p := &planner{PlanOptions: PlanOptions{Now: time.Now(), Serves: Serves{Kinds: []kube.Kind{kube.Deployment()}}}}
	for name, tc := range map[string]struct {
		reason, members string
		steps           bool
		atMost          int
		want            PlannedSpread
		slow            bool
	}{
		"Steps":    {"one goes first", "a b c d e", true, 20, PlannedSpread{Rolls: 5, Steps: true, AtMost: 20}, true},
		"Named":    {"a user chose the first", "a b c:first d e", true, 20, PlannedSpread{Rolls: 5, Steps: true, First: "deployment/c", AtMost: 20}, true},
		"Broken":   {"one that isn't healthy proves nothing", "a:unable,first b c d", true, 20, PlannedSpread{Rolls: 4, Steps: true, AtMost: 20}, true},
		"NoProof":  {"none can prove anything, so only the budget counts", "a:unable b:unable c:unable d:unable", true, 20, PlannedSpread{Rolls: 4, AtMost: 20}, false},
		"Few":      {"three go together", "a b c", true, 20, PlannedSpread{Rolls: 3, AtMost: 20}, false},
		"One":      {"there is no second", "a", true, 1, PlannedSpread{Rolls: 1, AtMost: 1}, false},
		"OneByOne": {"three, one at a time", "a b c", true, 1, PlannedSpread{Rolls: 3, Steps: true, AtMost: 1}, true},
		"NoSteps":  {"without steps, all of them", "a b c d e", false, 20, PlannedSpread{Rolls: 5, AtMost: 20}, false},
		"Budget":   {"without steps, two at a time", "a b c d e", false, 2, PlannedSpread{Rolls: 5, AtMost: 2}, true},
		"NoLimit":  {"neither steps nor a limit", "a b c d e", false, 0, PlannedSpread{Rolls: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spread.Spread{Steps: tc.steps}
			for field := range strings.FieldsSeq(tc.members) {
				id, word, _ := strings.Cut(field, ":")
				able := !strings.Contains(word, "unable")
				s.Set(spread.Member{ID: "Deployment.apps/shop/" + id, Namespace: "shop", Standing: spread.Ready, Able: able, Healthy: able, Begins: p.Now, First: strings.Contains(word, "first")})
			}
			if planned := p.planned(s, tc.atMost); planned != tc.want || planned.IsSlow() != tc.slow {
				t.Errorf("%s: %+v, slow %t; want %+v, %t", tc.reason, planned, planned.IsSlow(), tc.want, tc.slow)
			}
		})
	}
}

// TestPace: where the flags aren't known, a plan assumes the defaults.
func TestPace(t *testing.T) {
	t.Parallel()
	if s := (Serves{}).Safety(); !s.Ramp || s.MaxRolling != 20 || s.StopAfter != 1 {
		t.Errorf("%+v", s)
	}
	known := Serves{Watches: func(string) bool { return true }, Pace: installation.Pace{AtMost: 5}}
	if s := known.Safety(); s.Ramp || s.MaxRolling != 5 || s.StopAfter != 0 {
		t.Errorf("%+v of a controller with --ramp=false --max-rolling=5 --stop-after=0", s)
	}
}
