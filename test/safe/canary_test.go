package safe_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/kubelet"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// TestPausedCanary: a canary that waits for a person keeps its turn, and proves nothing: the other
// workloads wait. After the grace time another one is tried in its place.
func TestPausedCanary(t *testing.T) {
	t.Parallel()
	labtest.Shared(t, labtest.ArgoRollouts)
	s := newScene(t)
	s.users(t, 5)
	s.canary(t)
	s.run(t, "--settle", "100ms")
	s.SetConfig(t, "app", "key", "2")
	next := version("app", "2")
	s.await(t, func() (bool, string) {
		phase, _, _ := unstructured.NestedString(s.rollout(t).Object, "status", "phase")
		shown, _, _ := unstructured.NestedString(s.rollout(t).Object, "spec", "template", "metadata", "annotations", settings.Inputs)
		return phase == "Paused" && sight{shown: shown}.has(next), fmt.Sprintf("the canary is %s and shows %q", phase, shown)
	})
	s.awaitState(t, input.AwaitsTurn, next, name(1), name(2), name(3), name(4), name(5))
	s.checkUsers(t, "the canary waits for a person", next, 0)

	s.controller.Stop(t)
	s.flags = append(s.flags, "--pause-grace", "1s")
	s.start(t)
	s.awaitUsers(t, next, 5)
}

// canary creates a Rollout that pauses after its first pod, as the first user of the ConfigMap.
func (s *scene) canary(t *testing.T) {
	t.Helper()
	s.Make(t, fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, annotations: {%s: auto, %s: %s, %s: "true"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: canary}}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
  template:
    metadata: {labels: {app: canary}}
    spec: {schedulerName: %s, containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]}
`, settings.Reload, settings.Quiet, testkit.Quiet, settings.First, kubelet.Scheduler))
	s.await(t, func() (bool, string) {
		phase, _, _ := unstructured.NestedString(s.rollout(t).Object, "status", "phase")
		return phase == "Healthy", "the canary is " + phase
	})
}

func (s *scene) rollout(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
	s.Get(t, "canary", o)
	return o
}
