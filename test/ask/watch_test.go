package ask_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestWatch: -w writes what the controller decides, when it does, and an interrupt ends it
// without an error.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.CreateApp(t)
	s.Annotate(t, testkit.Web, settings.Hold, "release freeze")
	s.run(t)
	s.awaitOnRecord(t, web, "configmap/app", "secret/db")
	commands := map[string]*labtest.Running{}
	for _, command := range []string{"explain " + web, "status"} {
		commands[command] = inprocess.Start(t, inprocess.Command{Args: s.arguments(append(strings.Fields(command), "-w")...)})
	}
	await := func(reason input.Reason) {
		t.Helper()
		for name, running := range commands {
			labtest.Eventually(t, testkit.Patience, func() (bool, string) {
				return strings.Contains(running.Stdout(), string(reason)), name + " has not written " + string(reason) + ":\n" + running.Stdout() + running.Stderr()
			})
		}
	}
	await(input.InStep)
	s.touch(t, "app")
	await(input.Held)
	for name, running := range commands {
		if times := strings.Count(running.Stdout(), "WORKLOAD"); name == "status" && times != 1 {
			t.Errorf("status wrote its header %d times:\n%s", times, running.Stdout())
		}
		running.Signal(t, syscall.SIGINT)
		if code := running.ExitCode(t, testkit.Patience); code != 0 {
			t.Errorf("%s ended with %d: %s", name, code, running.Stderr())
		}
	}
}
