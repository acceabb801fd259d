package safe_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	s.canary(t, fmt.Sprintf(`template:
    metadata: {labels: {app: canary}}
    spec: {schedulerName: %s, containers: [{name: app, image: app, envFrom: [{configMapRef: {name: app}}]}]}`, kubelet.Scheduler))
	s.run(t, "--settle", "100ms")
	s.SetConfig(t, "app", "key", "2")
	next := version("app", "2")
	s.await(t, func() (bool, string) {
		phase := s.phase(t)
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

// TestRecreatedLender: the Deployment that lends its template to a Rollout is deleted and created again
// while the Rollout is on trial. Its generation is lower than before, and the trial still ends: the
// other workloads get the change.
func TestRecreatedLender(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"Running": false, "Stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labtest.Shared(t, labtest.ArgoRollouts)
			s := newScene(t)
			s.users(t, 5)
			s.run(t, "--settle", "100ms", "--max-rolling", "1")
			lender := s.lender(t)
			s.SetConfig(t, "app", "key", "2")
			next := version("app", "2")
			s.awaitPaused(t, lender, next)
			s.checkUsers(t, "the canary waits for a person, and its lender has the version", next, 1)

			if down {
				s.stop(t)
			}
			again := lender.DeepCopy()
			again.ObjectMeta = metav1.ObjectMeta{Namespace: lender.Namespace, Name: lender.Name}
			if err := s.Client.Delete(t.Context(), lender); err != nil {
				t.Fatal(err)
			}
			s.create(t, again)
			s.awaitPaused(t, again, next)
			if down {
				s.start(t)
			}
			if err := s.Client.Status().Patch(t.Context(), s.rollout(t), client.RawPatch(types.MergePatchType, []byte(`{"status":{"promoteFull":true}}`))); err != nil {
				t.Fatal(err)
			}
			s.awaitUsers(t, next, 5+1)
		})
	}
}

// lender creates a Deployment with a few generations and a canary that uses its template, and waits until
// the canary is on record.
func (s *scene) lender(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := user("canary", "app", "")
	d.Spec.Replicas = new(int32)
	s.create(t, d)
	for n := range 3 {
		s.Patch(t, d, d.Name, fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"edited":"%d"}}}}}`, n))
	}
	s.canary(t, "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: canary}")
	s.await(t, func() (bool, string) {
		return strings.Contains(s.record(t), "Rollout.argoproj.io_"+s.Namespace+"_canary"), "the canary isn't on record"
	})
	return d
}

// canary creates a Rollout with that template, which pauses after its first pod and is the first user
// of the ConfigMap.
func (s *scene) canary(t *testing.T, template string) {
	t.Helper()
	s.Make(t, fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, annotations: {%s: auto, %s: %s, %s: "true"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: canary}}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
  %s
`, settings.Reload, settings.Quiet, testkit.Quiet, settings.First, template))
	s.await(t, func() (bool, string) { phase := s.phase(t); return phase == "Healthy", "the canary is " + phase })
}

// awaitPaused waits until the canary of that version pauses, and its controller has seen the lender as it is.
func (s *scene) awaitPaused(t *testing.T, lender *appsv1.Deployment, version string) {
	t.Helper()
	s.await(t, func() (bool, string) {
		s.Get(t, lender.Name, lender)
		seen, _, _ := unstructured.NestedString(s.rollout(t).Object, "status", "workloadObservedGeneration")
		phase, shown := s.phase(t), lender.Spec.Template.Annotations[settings.Inputs]
		return phase == "Paused" && seen == strconv.FormatInt(lender.Generation, 10) && sight{shown: shown}.has(version),
			fmt.Sprintf("the canary is %s at generation %s of its lender, which has generation %d and shows %q", phase, seen, lender.Generation, shown)
	})
}

// phase is how far Argo Rollouts is with the canary.
func (s *scene) phase(t *testing.T) string {
	t.Helper()
	phase, _, _ := unstructured.NestedString(s.rollout(t).Object, "status", "phase")
	return phase
}

func (s *scene) rollout(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"})
	s.Get(t, "canary", o)
	return o
}
