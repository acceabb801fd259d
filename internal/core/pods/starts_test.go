package pods_test

import (
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/pods"
)

// TestStarts: what pods show about content that was written at second 20, as version 50.
func TestStarts(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 11, 19, 3, 0, second, 0, time.UTC) }
	pod := func(created, accepted, started int) pods.Pod {
		return pods.Pod{Revision: "web-b", Created: at(created), Accepted: at(accepted), Started: at(started), Version: 60}
	}
	with := func(p pods.Pod, change func(*pods.Pod)) pods.Pod {
		change(&p)
		return p
	}
	waiting := with(pod(10, 11, 0), func(p *pods.Pod) { p.Started = time.Time{} })
	cases := map[string]struct {
		reason       string
		pods         []pods.Pod
		env, mounted bool
	}{
		"None":        {"pods that start later load it", nil, true, true},
		"Created":     {"they were created after it", []pods.Pod{pod(21, 21, 21)}, true, true},
		"Accepted":    {"a node accepted them after it", []pods.Pod{pod(10, 21, 21)}, true, true},
		"Started":     {"their environment was read after it, their volumes perhaps before", []pods.Pod{pod(20, 20, 22)}, true, false},
		"SlowPull":    {"the image was pulled while it was written", []pods.Pod{pod(10, 10, 40)}, true, false},
		"NextSecond":  {"the environment is read a moment before the start", []pods.Pod{pod(20, 20, 21)}, false, false},
		"SameSecond":  {"nothing tells which came first", []pods.Pod{pod(20, 20, 20)}, false, false},
		"Before":      {"they run what was before", []pods.Pod{pod(10, 10, 11)}, false, false},
		"OneBefore":   {"one of them does", []pods.Pod{pod(21, 21, 22), pod(10, 10, 11)}, false, false},
		"Waiting":     {"its containers didn't start yet, but its volumes may be mounted", []pods.Pod{waiting}, true, false},
		"Unaccepted":  {"no node has it", []pods.Pod{with(waiting, func(p *pods.Pod) { p.Accepted = time.Time{} })}, true, true},
		"Ending":      {"one that ends doesn't count", []pods.Pod{with(pod(10, 10, 11), func(p *pods.Pod) { p.Terminating = true })}, true, true},
		"Earlier":     {"one of an earlier revision is about to be replaced", []pods.Pod{pod(21, 21, 22), with(pod(10, 10, 11), func(p *pods.Pod) { p.Revision = "web-a" })}, true, true},
		"OnlyEarlier": {"a rollout that is stuck has no pods", []pods.Pod{with(pod(21, 21, 22), func(p *pods.Pod) { p.Revision = "web-a" })}, false, false},
		"Hash":        {"a pod of a DaemonSet names the end of its revision's name", []pods.Pod{with(pod(10, 10, 11), func(p *pods.Pod) { p.Revision = "b" })}, false, false},
		"Nameless":    {"one whose revision isn't known counts", []pods.Pod{with(pod(10, 10, 11), func(p *pods.Pod) { p.Revision = "" })}, false, false},
		"Unmarked":    {"a write without a time came after the pod's last one", []pods.Pod{with(pod(30, 30, 31), func(p *pods.Pod) { p.Version = 40 })}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.StartsOf(tc.pods, "web-b")
			if env, mounted := s.After(at(20), 50, false), s.After(at(20), 50, true); env != tc.env || mounted != tc.mounted {
				t.Errorf("%s: loaded by environment %t, by volume %t; want %t, %t", tc.reason, env, mounted, tc.env, tc.mounted)
			}
		})
	}
	if all := pods.StartsOf([]pods.Pod{pod(10, 10, 11)}, ""); all.After(at(20), 50, false) || !all.After(at(5), 50, false) {
		t.Error("without the name of the revision, all pods count")
	}
	if s := pods.StartsOf([]pods.Pod{pod(30, 30, 31)}, ""); s.After(time.Time{}, 50, false) {
		t.Error("a write whose time isn't known was loaded by pods")
	}
	if (pods.Starts{}).After(at(20), 50, false) || (pods.Starts{Asked: true, Unknown: true}).After(at(20), 50, false) {
		t.Error("pods that weren't listed show something")
	}
}
