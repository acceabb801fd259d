package reload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// two is a stage of one workload with a ConfigMap and a Secret, both on record.
func two(t testing.TB, kind string) *stage {
	t.Helper()
	s := newStage(t, configMap("app", "key: one")+secret("db", "key: one")+workload(kind, "web", auto, uses("configmap/app", "secret/db")))
	s.awaitObserved(t, strings.ToLower(kind)+"/web")
	return s
}

// revert puts back the template of the revision that shows the given versions, as
// "kubectl rollout undo" does, whatever the kind.
func (s *stage) revert(t testing.TB, ref, shown string) {
	t.Helper()
	o := s.read(t, ref)
	if o.GetKind() == "Deployment" || o.GetKind() == "Rollout" {
		s.undo(t, o.GetName(), shown)
		return
	}
	list := &appsv1.ControllerRevisionList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.Namespace), client.MatchingLabels{"app": o.GetName()}); err != nil {
		t.Fatal(err)
	}
	for _, cr := range list.Items {
		var data struct {
			Spec struct {
				Template map[string]any `json:"template"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(cr.Data.Raw, &data); err != nil {
			t.Fatal(err)
		}
		text, _, _ := unstructured.NestedString(data.Spec.Template, "metadata", "annotations", settings.Inputs)
		if text != shown {
			continue
		}
		// What kubectl sends: the stored patch.
		if err := s.Client.Patch(t.Context(), o, client.RawPatch("application/strategic-merge-patch+json", cr.Data.Raw)); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no revision of %s shows %q", ref, shown)
}

// TestUndoOfTheFirstRollout: the revision before it carries no annotation. The next
// change of another source must not push the rejected content forward again.
func TestUndoOfTheFirstRollout(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			undoOfTheFirstRollout(t, kind)
		})
	}
}

func undoOfTheFirstRollout(t *testing.T, kind string) {
	t.Helper()
	name, ref, groupKind := "web", strings.ToLower(kind)+"/web", kind+".apps"
	s := two(t, kind)
	made := s.read(t, ref).GetCreationTimestamp().Time
	c := s.runProcess(t)
	s.awaitKnown(t, groupKind, name, "configmap/app", "secret/db")
	s.awaitSecondAfter(t, made) // DaemonSets tell their revisions apart by time
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, ref, 1)
	s.awaitKnown(t, groupKind, name, versionOf("two"))
	s.awaitObserved(t, ref)
	s.revert(t, ref, "")
	s.AwaitEvent(t, name, "Warning Undone", "configmap/app", "was reverted", "whatever their revision", "lockstep release "+ref)
	s.awaitKnown(t, groupKind, name, "back:")

	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, name, "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "ours, the person's, and nothing after it", 2, ref)
	kill(t, c)
	s.run(t)
	s.checkRollouts(t, "nor after a restart", 2, ref)

	s.change(t, "configmap/app", "{data: {key: three}}")
	s.awaitRollouts(t, ref, 3)
	s.checkRollouts(t, "another version ends it, with one rollout for both", 3, ref)
}

// awaitNotBack waits until nothing is on record as reverted.
func (s *stage) awaitNotBack(t testing.TB, groupKind, name string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.remembered(t, groupKind, name)
		return entry != "" && !strings.Contains(entry, "back:"), "still reverted: " + entry
	})
}

// TestStrippedPatch: an operator writes its own template right after ours. The old
// ReplicaSet is current again, and its pods never restarted.
func TestStrippedPatch(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.make(t, configMap("operator", "owns: web"))
	owner := s.read(t, "configmap/operator")
	s.change(t, web, fmt.Sprintf("{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: operator, uid: %s, controller: true}]}}", owner.GetUID()))
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.operate(t)
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "configmap/app", "ConfigMap/operator controls this workload", "lockstep.dev/strategy: evict", "--kind")
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.checkRollouts(t, "ours and the operator's", 2, web)
}

// operate takes our annotation away whenever it is there, until the test ends.
func (s *stage) operate(t testing.TB) {
	t.Helper()
	watch, err := testkit.NewClient(t, s.Cluster.Kubeconfig()).Watch(t.Context(), &appsv1.DeploymentList{}, client.InNamespace(s.Namespace), client.MatchingFields{"metadata.name": "web"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { watch.Stop(); <-done })
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok || d.Spec.Template.Annotations[settings.Inputs] == "" {
				continue
			}
			body := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:null}}}}}`, settings.Inputs)
			if err := s.Client.Patch(ctx, d, client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
				t.Error(err)
			}
		}
	}()
}

// TestAbortedCanary: the canary is aborted, and the next change of another source does
// not push the rejected content forward; a retry ends that.
func TestAbortedCanary(t *testing.T) {
	t.Parallel()
	const groupKind = "Rollout.argoproj.io"
	s := newCanary(t)
	c := s.runProcess(t)
	s.awaitKnown(t, groupKind, "canary", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "canary", "Normal Reloaded", "configmap/app")
	shown := s.shown(t, "rollout/canary")
	s.awaitReplicaSets(t, "canary", "", shown)
	s.awaitPhase(t, "Paused")
	s.abort(t, true)
	s.AwaitEvent(t, "canary", "Warning Undone", "configmap/app")
	s.awaitKnown(t, groupKind, "canary", "back:")
	kill(t, c)
	s.run(t)
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "canary", "Warning Undone", "not rolled out", "secret/db")
	s.witness.Pass(t)
	if got := s.shown(t, "rollout/canary"); got != shown {
		t.Fatalf("the aborted canary shows %q, want %q as it was", got, shown)
	}
	s.abort(t, false)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := s.shown(t, "rollout/canary")
		return now != shown, "after the retry it still shows " + now
	})
}

// newCanary makes a stage with a Rollout that waits at half of its pods.
func newCanary(t testing.TB) *stage {
	t.Helper()
	s := newStage(t, configMap("app", "key: one")+secret("db", "key: one")+
		strings.Replace(fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+uses("configmap/app", "secret/db")+"}}"),
			"canary: {}", "canary: {steps: [{setWeight: 50}, {pause: {}}]}", 1),
		labtest.KWOK, labtest.ArgoRollouts)
	s.awaitPhase(t, "Healthy")
	return s
}

// abort aborts the Rollout, or retries it, as Argo's plugin for kubectl does.
func (s *stage) abort(t testing.TB, abort bool) {
	t.Helper()
	s.setStatus(t, "rollout/canary", fmt.Sprintf(`{"status":{"abort":%t}}`, abort))
}

func (s *stage) setStatus(t testing.TB, ref, body string) {
	t.Helper()
	if err := s.Client.Status().Patch(t.Context(), s.read(t, ref), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
		t.Fatal(err)
	}
}

// awaitPhase waits until Argo Rollouts calls the canary that.
func (s *stage) awaitPhase(t testing.TB, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		phase, _, _ := unstructured.NestedString(s.read(t, "rollout/canary").Object, "status", "phase")
		return phase == want, "rollout/canary is " + phase + ", want " + want
	})
}

// TestChangeAfterAbort: a change that is delivered after an abort was accepted isn't blamed for it.
func TestChangeAfterAbort(t *testing.T) {
	t.Parallel()
	s := newCanary(t)
	s.run(t)
	s.awaitKnown(t, "Rollout.argoproj.io", "canary", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "canary", "Normal Reloaded", "configmap/app")
	s.awaitPhase(t, "Paused")
	s.abort(t, true)
	s.AwaitEvent(t, "canary", "Warning Undone", "configmap/app")
	s.change(t, "rollout/canary", fmt.Sprintf(`{"metadata": {"annotations": {%q: "1"}}}`, settings.Release))
	s.AwaitEvent(t, "canary", "Released")
	s.awaitPhase(t, "Degraded")
	s.checkHistoryOfAbort(t)
	shown := s.shown(t, "rollout/canary")
	s.change(t, "configmap/app", "{data: {key: three}}")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := s.shown(t, "rollout/canary")
		return now != shown, "it still shows " + now
	})
	s.awaitPhase(t, "Paused")
	s.witness.Pass(t)
	failed := slices.DeleteFunc(s.Events(t, "canary"), func(e string) bool { return !strings.Contains(e, "RolloutFailed") })
	if len(failed) != 1 {
		t.Errorf("%d rollouts failed, want the aborted one: %q", len(failed), failed)
	}
}

// checkHistoryOfAbort checks that a release isn't a turn: Argo Rollouts copies its annotation to the
// ReplicaSet of the canary, and repeats the number of the revision there.
func (s *stage) checkHistoryOfAbort(t *testing.T) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		var sets appsv1.ReplicaSetList
		if err := s.Client.List(t.Context(), &sets, client.InNamespace(s.Namespace)); err != nil {
			t.Fatal(err)
		}
		copied := slices.ContainsFunc(sets.Items, func(o appsv1.ReplicaSet) bool { return o.Annotations[settings.Release] != "" })
		return copied, "no ReplicaSet has the annotation of the release"
	})
	var numbers []string
	for _, r := range s.history(t, s.Cluster.Kubeconfig(), "rollout/canary").Revisions {
		numbers = append(numbers, fmt.Sprintf("%d current=%t again=%t", r.Revision, r.Current, r.Again))
	}
	if want := []string{"2 current=false again=false", "1 current=true again=false"}; !slices.Equal(numbers, want) {
		t.Errorf("after abort and release, history lists %q, want %q", numbers, want)
	}
}
