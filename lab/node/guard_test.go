package main

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest/process"
)

// TestGuardTakesSessionsAway: those that are still held when the pipe ends, and no
// stranger who has the number of one by then.
func TestGuardTakesSessionsAway(t *testing.T) {
	held, dropped, stranger := startSession(t), startSession(t), startSession(t)
	gone := process.Identity{PID: stranger.PID, Birth: "somebody who had this id before"}
	lines := []string{"hold session " + held.String(), "hold session " + dropped.String(), "hold session " + gone.String(), "drop session " + dropped.String()}
	if err := guard(strings.NewReader(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	if held.Alive() {
		t.Error("a session that is held stays")
	}
	if !dropped.Alive() || !stranger.Alive() {
		t.Errorf("the session that was dropped runs: %t; the stranger runs: %t", dropped.Alive(), stranger.Alive())
	}
}

func startSession(t *testing.T) process.Identity {
	t.Helper()
	p, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p.ID()
}

func TestGuardRefusesWhatIsNoSession(t *testing.T) {
	for _, thing := range []string{"session", "session x", "session 0 x", "session 1 x", "session -1 x", "house 4711"} {
		if err := takeAway(thing); err == nil {
			t.Errorf("%q was taken away", thing)
		}
	}
}
