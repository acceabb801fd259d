package ask_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/test/inprocess"
)

// The answers, as programs read them.
type (
	state struct {
		Reason, Message, Ends, From string
		Since, Next, PendingSince   *time.Time
	}
	used struct {
		Input, Delivered, Current, Hidden, WrittenBy, Note string
		Followed                                           bool
		Places                                             []string
	}
	event      struct{ Reason, Note string }
	controller struct {
		State, Version, Note string
		Since                *time.Time
	}
	explanation struct {
		Namespace, Workload, Meaning string
		Controller                   controller
		State                        state
		Estimate                     *state
		Inputs                       []used
		Warnings, Events             []event
		Notes                        []string
		Spread                       []struct{ Users, Rolling, Place int }
		StoppedVersions              []struct{ FailedOn []string }
		Stops                        []struct{ Reason string }
		Window                       *struct {
			On    string
			Opens *time.Time
		}
	}
	status struct {
		Controller controller
		Workloads  []struct {
			Namespace, Workload string
			State               state
			Inputs              []used
		}
		Notes []string
	}
)

// ask runs a command, and returns what it wrote.
func (s *stage) ask(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return inprocess.Run(t, s.arguments(args...)...)
}

func (s *stage) arguments(args ...string) []string {
	all := slices.Concat(args, []string{"--kubeconfig", s.kubeconfig, "--controller-namespace", s.Own}, s.flags)
	if !slices.Contains(args, "-A") && !slices.Contains(args, "-n") {
		all = append(all, "-n", s.Namespace)
	}
	return all
}

// answer runs a command that must succeed, and reads its JSON.
func answer[T any](t testing.TB, s *stage, args ...string) T {
	t.Helper()
	stdout, stderr, code := s.ask(t, append(args, "-o", "json")...)
	if code != 0 {
		t.Fatalf("%q ended with %d: %s", args, code, stderr)
	}
	var got T
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%q wrote %s: %v", args, stdout, err)
	}
	return got
}

func (s *stage) explain(t testing.TB, ref string) explanation {
	t.Helper()
	return answer[explanation](t, s, "explain", ref)
}

// status is the state of a workload by "lockstep status", zero when it is not listed.
func (s *stage) status(t testing.TB, ref string) state {
	t.Helper()
	for _, row := range answer[status](t, s, "status").Workloads {
		if row.Workload == ref {
			return row.State
		}
	}
	return state{}
}

// input is what an explanation says of an input, zero when it does not name it.
func (e explanation) input(name string) used {
	for _, i := range e.Inputs {
		if i.Input == name {
			return i
		}
	}
	return used{}
}

// release is "lockstep release".
func (s *stage) release(t testing.TB, ref string) (stdout, stderr string, code int) {
	t.Helper()
	return inprocess.Run(t, "release", ref, "-n", s.Namespace, "--kubeconfig", s.kubeconfig)
}
