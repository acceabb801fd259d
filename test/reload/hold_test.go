package reload_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/internal/labtest/program"
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
		if said := s.command(t, "release", held); !strings.Contains(said, `removed the hold "release freeze"`) {
			t.Errorf("release of %s says %q", held, said)
		}
		s.awaitRollouts(t, web, i+1)
		s.awaitKnown(t, deploy, "web", versionOf("second-"+held[:2]))
		s.checkRollouts(t, held+" is released", i+1, web)
	}
}

// hold holds the Deployment, and waits until that is on record.
func (s *stage) hold(t testing.TB, why string) {
	t.Helper()
	s.command(t, "hold", web, why)
	s.awaitKnown(t, deploy, "web", `"hold":{"by":"`+why+`"}`)
}

// undoByKubectl undoes the last rollout with the real kubectl, which gives the Deployment the
// annotations of the revision before.
func (s *stage) undoByKubectl(t testing.TB) {
	t.Helper()
	s.awaitObserved(t, web)
	_, stderr, code := labtest.RunCommand(t, labtest.Command{
		Path: labtest.Program(t, program.Kubectl), Args: []string{"rollout", "undo", web, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig()},
	})
	if code != 0 {
		t.Fatalf("kubectl rollout undo: exit code %d\n%s", code, stderr)
	}
	if hold, held := s.read(t, web).GetAnnotations()[settings.Hold]; held {
		t.Fatalf("kubectl left the hold %q; this test is about one that it removes", hold)
	}
}

// TestHoldOutlivesUndo: a person holds a Deployment and undoes its rollout, which removes the
// annotation. The hold counts until the release, also after a restart. One that a person
// removes afterwards ends at once.
func TestHoldOutlivesUndo(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := s.runProcess(t)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.hold(t, "incident 42")
	s.undoByKubectl(t)
	s.awaitKnown(t, deploy, "web", `"undone":true`, "back:")
	const says = `it is held ("incident 42"), although an undo removed the annotation lockstep.dev/hold; run lockstep release to end it`
	if said := s.command(t, "explain", web, "--controller-namespace", s.Own); !strings.Contains(said, says) {
		t.Errorf("explain does not say %q:\n%s", says, said)
	}

	kill(t, c)
	s.run(t)
	s.change(t, "configmap/app", "{data: {key: three}}")
	s.AwaitEvent(t, "web", "Warning Held", `"incident 42"`, "an undo removed the annotation", "lockstep release")
	s.checkRollouts(t, "ours, the undo, and nothing while it is held", 2, web)
	s.command(t, "release", web)
	s.awaitRollouts(t, web, 3)
	s.awaitKnown(t, deploy, "web", versionOf("three"))

	s.hold(t, "incident 43")
	s.change(t, "configmap/app", "{data: {key: four}}")
	s.AwaitEvent(t, "web", "Warning Held", `"incident 43"`)
	s.annotate(t, web, settings.Hold)
	s.awaitRollouts(t, web, 4)
}
