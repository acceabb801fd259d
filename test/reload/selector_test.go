package reload_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestSelectorThatMatchesNothing: a controller whose labels choose no namespace yet is
// ready, and follows the first one that gets them.
func TestSelectorThatMatchesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, simple())
	c := inprocess.StartController(t, s.World, "--namespace-selector", "team="+s.Own, "--quiet", testkit.Quiet)
	c.AwaitReady(t, true)
	s.describe(t, `{"metadata":{"labels":{"team":"`+s.Own+`"}}}`)
	s.awaitKnown(t, deploy, "web", "configmap/app")
	c.AwaitReady(t, true)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
}
