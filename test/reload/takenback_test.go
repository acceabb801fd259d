package reload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/input"
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
	c := s.run(t)
	s.awaitKnown(t, groupKind, name, "configmap/app", "secret/db")
	s.awaitSecondAfter(t, made) // DaemonSets tell their revisions apart by time
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, ref, 1)
	s.awaitKnown(t, groupKind, name, versionOf("two"))
	s.awaitObserved(t, ref)
	s.revert(t, ref, "")
	s.AwaitEvent(t, name, "Warning Undone", "configmap/app", "was taken back", "whatever their revision", "lockstep release "+ref)
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

// TestRedoAfterUndo: a later revision is current again, so that nothing is taken back.
func TestRedoAfterUndo(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	second := s.shown(t, web)
	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.awaitKnown(t, deploy, "web", "back:")
	s.undo(t, "web", second)
	s.awaitNotBack(t, deploy, "web")
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.awaitRollouts(t, web, 4)

	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.awaitKnown(t, deploy, "web", "back:")
	s.change(t, web, "{spec: {template: {metadata: {annotations: {restarted: now}}}}}")
	s.awaitNotBack(t, deploy, "web")
}

// awaitNotBack waits until nothing is on record as taken back.
func (s *stage) awaitNotBack(t testing.TB, groupKind, name string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		entry := s.remembered(t, groupKind, name)
		return entry != "" && !strings.Contains(entry, "back:"), "still taken back: " + entry
	})
}

// TestUndoOfOneOfTwoRollouts: undoing the rollout of the Secret keeps the ConfigMap of
// the revision before delivered.
func TestUndoOfOneOfTwoRollouts(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	second := s.shown(t, web)
	s.awaitObserved(t, web)
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.awaitRollouts(t, web, 2)
	s.awaitObserved(t, web)
	s.undo(t, "web", second)
	note := s.AwaitEvent(t, "web", "Warning Undone", "secret/db")
	if strings.Contains(note, "configmap/app") {
		t.Errorf("the ConfigMap is called taken back too: %s", note)
	}
}

// TestScalingTakesNothingBack: other writers change much of a workload, and only its
// template matters.
func TestScalingTakesNothingBack(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitObserved(t, web)
	for _, replicas := range []int{2, 0} {
		s.change(t, web, fmt.Sprintf("{spec: {replicas: %d}}", replicas))
		s.awaitObserved(t, web)
	}
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.awaitRollouts(t, web, 2)
	for _, note := range s.Events(t, "web") {
		if strings.Contains(note, "Undone") {
			t.Error(note)
		}
	}
}

// TestUndoOfAnothersRollout: a deployment tool writes the ConfigMap and a bad image, and
// a person takes the Deployment back. The old pods run the old content, new ones read
// the new content: that is no workload in step.
func TestUndoOfAnothersRollout(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.annotate(t, web, settings.Quiet, "10s")
	c := s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, web, "{spec: {template: {metadata: {annotations: {image: bad}}}}}")
	s.awaitKnown(t, deploy, "web", versionOf("two"))
	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.AwaitEvent(t, "web", "Warning Undone", "configmap/app")
	s.awaitKnown(t, deploy, "web", "back:")
	kill(t, c)
	s.annotate(t, web, settings.Quiet, testkit.Quiet)
	s.run(t)
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "the tool's and the person's", 2, web)
}

// TestRollbackOfAnothersRollout: a deployment tool writes the old ConfigMap and the old
// template. That rollout uses the old revision again, and delivers what exists.
func TestRollbackOfAnothersRollout(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.annotate(t, web, settings.Quiet, "10s")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.change(t, web, "{spec: {template: {metadata: {annotations: {image: bad}}}}}")
	s.awaitKnown(t, deploy, "web", versionOf("two"), "from:1")
	s.awaitObserved(t, web)
	s.change(t, "configmap/app", "{data: {key: one}}")
	s.change(t, web, "{spec: {template: {metadata: {annotations: {image: null}}}}}")
	s.awaitKnown(t, deploy, "web", versionOf("one"), "from:2")
	s.annotate(t, web, settings.Quiet, testkit.Quiet)
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.awaitRollouts(t, web, 3)
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

// TestHoldOnAnUndoneSource: the hold adds to the bar, and its end leaves the bar.
func TestHoldOnAnUndoneSource(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.awaitKnown(t, deploy, "web", "back:")
	s.annotate(t, "configmap/app", settings.Hold, "audit")
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "held and taken back", 2, web)
	s.annotate(t, "configmap/app", settings.Hold)
	s.checkRollouts(t, "taken back still", 2, web)
}

// TestRelease: what was taken back is accepted without a rollout, once; the annotation
// of an earlier release does not release again.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := two(t, "Deployment")
	s.run(t)
	s.awaitKnown(t, deploy, "web", "configmap/app", "secret/db")
	release := func() {
		t.Helper()
		_, stderr, code := labtest.RunCommand(t, labtest.Command{
			Path: labtest.Binary(t, "./cmd/lockstep"),
			Args: []string{"release", web, "-n", s.Namespace, "--kubeconfig", s.Cluster.Kubeconfig()},
		})
		if code != 0 {
			t.Fatalf("release: exit code %d\n%s", code, stderr)
		}
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.awaitRollouts(t, web, 1)
	second := s.shown(t, web)
	s.awaitObserved(t, web)
	s.undo(t, "web", "")
	s.awaitKnown(t, deploy, "web", "back:")
	release()
	s.AwaitEvent(t, "web", "Normal Released", "configmap/app")
	s.awaitNotBack(t, deploy, "web")
	s.checkRollouts(t, "a release is no rollout", 2, web)

	released := s.remembered(t, deploy, "web")
	s.undo(t, "web", second)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		now := s.remembered(t, deploy, "web")
		// Before its revision is made, only that is on record.
		return now != released && !strings.Contains(now, string(input.GenerationNotObserved)), "the redo is not on record: " + now
	})
	s.undo(t, "web", "")
	s.awaitKnown(t, deploy, "web", "back:")
	s.change(t, "secret/db", "{stringData: {key: two}}")
	s.AwaitEvent(t, "web", "Warning Undone", "not rolled out", "secret/db")
	s.checkRollouts(t, "the earlier release is used up", 4, web)
	release()
	s.awaitRollouts(t, web, 5)
}

// TestAbortedCanary: the canary is aborted, and the next change of another source does
// not push the rejected content forward; a retry ends that.
func TestAbortedCanary(t *testing.T) {
	t.Parallel()
	const groupKind = "Rollout.argoproj.io"
	s := newCanary(t)
	c := s.run(t)
	s.awaitKnown(t, groupKind, "canary", "configmap/app", "secret/db")
	s.change(t, "configmap/app", "{data: {key: two}}")
	s.AwaitEvent(t, "canary", "Normal Reloaded", "configmap/app")
	shown := s.shown(t, "rollout/canary")
	s.awaitReplicaSets(t, "canary", "", shown)
	s.awaitPhase(t, "rollout/canary", "Paused")
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

// TestAbortedCanaryAndContentBack: the abort made pods of the stable revision, which loaded
// what existed. When the content goes back to what that revision shows, it is not used again
// as it is: those pods would stay.
func TestAbortedCanaryAndContentBack(t *testing.T) {
	t.Parallel()
	s := newCanary(t)
	s.run(t)
	s.awaitKnown(t, "Rollout.argoproj.io", "canary", "configmap/app")
	shows := func(text string) {
		t.Helper()
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			now := s.shown(t, "rollout/canary")
			return strings.Contains(now, text), "it shows " + now + ", want " + text
		})
	}
	s.change(t, "configmap/app", "{data: {key: two}}")
	shows("configmap/app~")
	stable := s.shown(t, "rollout/canary")
	s.awaitPhase(t, "rollout/canary", "Paused")
	s.setStatus(t, "rollout/canary", `{"status":{"promoteFull":true}}`)
	s.awaitPhase(t, "rollout/canary", "Healthy")
	s.change(t, "configmap/app", "{data: {key: three}}")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		return s.shown(t, "rollout/canary") != stable, "it still shows " + stable
	})
	s.awaitPhase(t, "rollout/canary", "Paused")
	s.abort(t, true)
	s.AwaitEvent(t, "canary", "Warning Undone", "configmap/app")
	s.change(t, "configmap/app", "{data: {key: two}}")
	shows(stable + ",again:")
}

// newCanary makes a stage with a Rollout that waits at half of its pods.
func newCanary(t testing.TB) *stage {
	t.Helper()
	s := newStage(t, configMap("app", "key: one")+secret("db", "key: one")+
		strings.Replace(fmt.Sprintf(rollout, "canary", "canary", "template: {metadata: {labels: {app: canary}}, spec: {"+uses("configmap/app", "secret/db")+"}}"),
			"canary: {}", "canary: {steps: [{setWeight: 50}, {pause: {}}]}", 1),
		labtest.KWOK, labtest.ArgoRollouts)
	s.awaitPhase(t, "rollout/canary", "Healthy")
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
func (s *stage) awaitPhase(t testing.TB, ref, want string) {
	t.Helper()
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		phase, _, _ := unstructured.NestedString(s.read(t, ref).Object, "status", "phase")
		return phase == want, ref + " is " + phase + ", want " + want
	})
}
