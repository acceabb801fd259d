package pods_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/pods"
)

func TestNextEviction(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old := func(name string, ready bool) pods.Pod {
		return pods.Pod{Name: name, Created: since.Add(-time.Hour), Ready: ready}
	}
	young := func(name string, ready bool) pods.Pod {
		return pods.Pod{Name: name, Created: since.Add(time.Second), Ready: ready}
	}
	ending := func(p pods.Pod) pods.Pod {
		p.Terminating = true
		return p
	}
	for name, tc := range map[string]struct {
		reason   string
		pods     []pods.Pod
		replicas int
		victim   string
		done     bool
	}{
		"First":        {"all work: one goes", []pods.Pod{old("a", true), old("b", true)}, 2, "a", false},
		"Next":         {"its successor works: the next one goes", []pods.Pod{young("c", true), old("b", true)}, 2, "b", false},
		"NotReady":     {"its successor does not work yet", []pods.Pod{young("c", false), old("b", true)}, 2, "", false},
		"StillEnding":  {"the last one has not gone yet", []pods.Pod{ending(old("a", true)), old("b", true)}, 2, "", false},
		"TooFew":       {"its successor does not exist yet", []pods.Pod{old("b", true)}, 2, "", false},
		"BrokenFirst":  {"one that does not work anyway goes first", []pods.Pod{old("a", true), old("b", false)}, 2, "b", false},
		"AllBroken":    {"nothing works: waiting would help nobody", []pods.Pod{old("a", false)}, 2, "a", false},
		"Done":         {"everyone is younger", []pods.Pod{young("c", true), young("d", true)}, 2, "", true},
		"DoneUnready":  {"younger is enough; health is the workload's own affair", []pods.Pod{young("c", false)}, 1, "", true},
		"LastOneEnds":  {"an old pod that is ending still runs the old version", []pods.Pod{ending(old("a", true)), young("c", true)}, 1, "", false},
		"SameSecond":   {"in doubt a pod is old", []pods.Pod{{Name: "a", Created: since, Ready: true}}, 1, "a", false},
		"NoPods":       {"nobody runs an old version", nil, 2, "", true},
		"UnknownCount": {"nobody knows how many there should be", []pods.Pod{old("a", true)}, 0, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim, done := pods.NextEviction(tc.pods, tc.replicas, since, false)
			got := ""
			if victim != nil {
				got = victim.Name
			}
			if got != tc.victim || done != tc.done {
				t.Errorf("%s: victim %q done %t, want %q %t", tc.reason, got, done, tc.victim, tc.done)
			}
		})
	}
}

// TestLastOnTrial: whether the version is healthy shows with the successor of the last pod.
func TestLastOnTrial(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 15, 3, 0, 0, 0, time.UTC)
	young := func(ready bool) []pods.Pod {
		return []pods.Pod{{Name: "c", Created: since.Add(time.Second), Ready: ready}}
	}
	for name, tc := range map[string]struct {
		reason   string
		pods     []pods.Pod
		replicas int
		done     bool
	}{
		"Missing":  {"it doesn't exist yet", nil, 1, false},
		"Unready":  {"it doesn't work yet", young(false), 1, false},
		"Ready":    {"it works", young(true), 1, true},
		"ScaledTo": {"no pod is wanted any more", nil, 0, true},
	} {
		if victim, done := pods.NextEviction(tc.pods, tc.replicas, since, true); victim != nil || done != tc.done {
			t.Errorf("%s: %v, done is %t: %s", name, victim, done, tc.reason)
		}
	}
}

func TestRunning(t *testing.T) {
	t.Parallel()
	if got := pods.Running([]pods.Pod{{Name: "a"}, {Name: "b", Terminating: true}}); got != 1 {
		t.Errorf("%d pods run, want one", got)
	}
}
