package reload_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/labtest"
)

// command runs a command of the built program in the stage's namespace.
func (s *stage) command(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, code := labtest.RunCommand(t, labtest.Command{
		Path: labtest.Binary(t, "./cmd/lockstep"), Args: append(args, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig()),
	})
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr)
	}
	return stdout
}

// TestHoldByCommand: what a person holds by a command waits, with the reason, and "release"
// delivers what has gathered in one rollout, of a workload and of a source.
func TestHoldByCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	for i, held := range []string{"deploy/web", "cm/app"} {
		s.command(t, "hold", held, "release freeze")
		s.change(t, "configmap/app", "{data: {key: first-"+held[:2]+"}}")
		s.AwaitEvent(t, "web", "Warning Held", `"release freeze"`)
		s.change(t, "configmap/app", "{data: {key: second-"+held[:2]+"}}")
		s.checkRollouts(t, held+" is held", i, web)
		if said := s.command(t, "release", held); !strings.Contains(said, `the hold is removed: "release freeze"`) {
			t.Errorf("release of %s says %q", held, said)
		}
		s.awaitRollouts(t, web, i+1)
		s.awaitKnown(t, deploy, "web", versionOf("second-"+held[:2]))
		s.checkRollouts(t, held+" is released", i+1, web)
	}
}
