package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/core/fingerprint"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/labtest"
	"github.com/lockstep-dev/lockstep/test/inprocess"
	"github.com/lockstep-dev/lockstep/test/testkit"
)

// followed is a world with an application that is on record, and a witness.
func followed(t *testing.T) (*testkit.World, *testkit.Witness, *testkit.Controller) {
	t.Helper()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	witness := w.NewWitness(t)
	c := inprocess.StartReady(t, w)
	witness.AwaitKnown(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	return w, witness, c
}

// patient is a followed world whose application is rolled out an hour after a change, which
// is when a test shortens its quiet window.
func patient(t *testing.T) *testkit.World {
	t.Helper()
	w := testkit.NewWorld(t)
	web := testkit.Deployment(testkit.Web, "app", "db")
	web.Annotations[settings.Quiet] = "1h"
	w.Create(t, testkit.ConfigMap("app", "key", "1"), testkit.Secret("db", "key", "1"), web)
	witness := w.NewWitness(t)
	w.StartReady(t, "--max-delay", "1h")
	witness.AwaitKnown(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	return w
}

// checkUntouched fails when the Deployment was rolled out at all.
func checkUntouched(t *testing.T, w *testkit.World, why string) {
	t.Helper()
	if revisions, shown := w.Revisions(t, testkit.Web), w.Shown(t, testkit.Web); revisions != 1 || shown != "" {
		t.Errorf("%s: the Deployment has %d revisions and shows %q, want it untouched", why, revisions, shown)
	}
}

func TestOneRolloutForConfigMapAndSecret(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.SetConfig(t, "app", "key", "2")
	w.SetSecret(t, "db", "key", "2")
	w.Settle(t) // the controller has heard of both
	w.Annotate(t, testkit.Web, settings.Quiet, testkit.Quiet)

	shown := w.AwaitRollout(t, testkit.Web, "")
	for _, source := range []string{"configmap/app~", "secret/db~"} {
		if !strings.Contains(shown, source) {
			t.Errorf("the template shows %q, want %s in it", shown, source)
		}
	}
	w.AwaitEvent(t, testkit.Web, "Normal Reloaded", "configmap/app", "secret/db", " -> ")
	w.AwaitRecord(t, testkit.Web, strings.Split(strings.Split(shown, ",")[0], "~")[1])
	w.CheckRevisions(t, testkit.Web, 2, "one rollout for two changes at once")
}

func TestNothingIsRestartedForNothing(t *testing.T) {
	t.Parallel()
	w, witness, c := followed(t)
	d := testkit.Deployment("keyed", "", "")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}, Key: "key"},
	}}}
	w.Create(t, d)
	w.AwaitRecord(t, "keyed", "configmap/app")
	witness.Pass(t)
	checkUntouched(t, w, "install")

	w.Patch(t, &corev1.ConfigMap{}, "app", `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`)
	w.Patch(t, &corev1.Secret{}, "db", `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`)
	witness.Pass(t)
	checkUntouched(t, w, "a change of labels and annotations")

	w.Patch(t, &corev1.ConfigMap{}, "app", `{"data":null,"binaryData":{"key":"MQ=="}}`)
	witness.Pass(t)
	checkUntouched(t, w, "the same bytes in another field")

	recreate(t, w, "app", map[string]string{"key": "1"})
	witness.Pass(t)
	checkUntouched(t, w, "deleted and made anew with the same content")

	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	inprocess.StartReady(t, w)
	witness.Pass(t)
	checkUntouched(t, w, "restart")

	w.SetConfig(t, "app", "other", "x")
	w.AwaitRollout(t, testkit.Web, "")
	witness.Pass(t)
	if shown := w.Shown(t, "keyed"); shown != "" {
		t.Errorf("a workload that reads one key was rolled out for another: %q", shown)
	}
}

func recreate(t *testing.T, w *testkit.World, name string, data map[string]string) {
	t.Helper()
	old := &corev1.ConfigMap{}
	w.Get(t, name, old)
	if err := w.Client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	fresh := testkit.ConfigMap(name, "", "")
	fresh.Data = data
	w.Create(t, fresh)
}

func TestChangeWhileAwayIsDelivered(t *testing.T) {
	t.Parallel()
	w, _, c := followed(t)
	if code := c.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	recreate(t, w, "app", map[string]string{"key": "2"})
	w.SetSecret(t, "db", "key", "2")
	inprocess.StartReady(t, w)
	w.AwaitRollout(t, testkit.Web, "")
	w.AwaitEvent(t, testkit.Web, "Normal Reloaded", "configmap/app", "secret/db")
	w.CheckRevisions(t, testkit.Web, 2, "one rollout for both changes during the downtime")
}

func TestUndoIsRespected(t *testing.T) {
	t.Parallel()
	w, witness, _ := followed(t)
	w.SetConfig(t, "app", "key", "2")
	first := w.AwaitRollout(t, testkit.Web, "")
	w.Revisions(t, testkit.Web) // it is to have its ReplicaSet, for the undo
	w.SetConfig(t, "app", "key", "3")
	second := w.AwaitRollout(t, testkit.Web, first)
	w.Revisions(t, testkit.Web)
	witness.Pass(t)
	undo(t, w, first)
	witness.Pass(t)
	if got := w.Shown(t, testkit.Web); got != first {
		t.Errorf("the undone Deployment shows %q, want %q as the person left it (not %q)", got, first, second)
	}
	w.SetConfig(t, "app", "key", "4")
	w.AwaitRollout(t, testkit.Web, first)
}

// undo does what "kubectl rollout undo" does: it puts the template of the
// revision that shows the given versions back.
func undo(t *testing.T, w *testkit.World, shown string) {
	t.Helper()
	sets := &appsv1.ReplicaSetList{}
	if err := w.Client.List(t.Context(), sets, client.InNamespace(w.Namespace), client.MatchingLabels{"app": testkit.Web}); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(sets.Items, func(rs appsv1.ReplicaSet) bool { return rs.Spec.Template.Annotations[settings.Inputs] == shown })
	if i < 0 {
		t.Fatalf("no revision shows %q", shown)
	}
	template := sets.Items[i].Spec.Template
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	labtest.Eventually(t, testkit.Patience, func() (bool, string) { // its controller writes it too
		d := w.Deployment(t, testkit.Web)
		d.Spec.Template = template
		err := w.Client.Update(t.Context(), d)
		return err == nil, fmt.Sprint(err)
	})
}

func TestConfigMapAndTemplateTogetherAreOneRollout(t *testing.T) {
	t.Parallel()
	w := patient(t) // an upgrade writes one object after the other
	w.SetConfig(t, "app", "key", "2")
	w.Patch(t, &appsv1.Deployment{}, testkit.Web, `{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`)
	second := fingerprint.Hasher{}.Content(map[string]string{"key": "2"}, nil).Version(fingerprint.AllKeys())
	w.AwaitRecord(t, testkit.Web, second.String())
	w.Annotate(t, testkit.Web, settings.Quiet, testkit.Quiet)
	w.CheckRevisions(t, testkit.Web, 2, "one rollout for an upgrade of both")
}

func TestMalformedAnnotation(t *testing.T) {
	t.Parallel()
	w, witness, _ := followed(t)
	w.Annotate(t, testkit.Web, settings.Quiet, "soon")
	w.AwaitEvent(t, testkit.Web, "Warning InvalidAnnotation", settings.Quiet, `"soon"`, "duration such as 10s", "leaves the workload alone")
	w.SetConfig(t, "app", "key", "2")
	witness.Pass(t)
	checkUntouched(t, w, "an annotation that nobody understands")

	w.Annotate(t, testkit.Web, settings.Quiet, testkit.Quiet)
	w.AwaitRollout(t, testkit.Web, "")

	shown := w.Shown(t, testkit.Web)
	w.Annotate(t, testkit.Web, settings.Reload, "configmap/app,what")
	w.AwaitEvent(t, testkit.Web, "Warning InvalidAnnotation", settings.Reload, `"configmap/app,what"`, "auto, search, never")
	w.SetConfig(t, "app", "key", "3")
	witness.Pass(t)
	w.Annotate(t, testkit.Web, settings.Reload, "auto")
	w.AwaitRollout(t, testkit.Web, shown)
}

func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	w, witness, _ := followed(t)
	w.Annotate(t, testkit.Web, settings.Hold, "release freeze")
	w.SetConfig(t, "app", "key", "2")
	w.SetSecret(t, "db", "key", "2")
	witness.Pass(t)
	checkUntouched(t, w, "held")
	w.AwaitEvent(t, testkit.Web, "Held", settings.Hold, "release freeze")
	awaitFurtherHeld(t, w)
	w.Annotate(t, testkit.Web, settings.Hold)
	w.AwaitRollout(t, testkit.Web, "")
	w.CheckRevisions(t, testkit.Web, 2, "one rollout for both after the release")
}

// TestWritersInTheWayAreNoReasonToGiveUp: whoever writes the Deployment between
// our decision and our patch makes the patch fail; the change is then decided
// anew and delivered once.
func TestWritersInTheWayAreNoReasonToGiveUp(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t)
	w.CreateApp(t)
	witness := w.NewWitness(t)
	between := testkit.NewBetween(t, w, "deployments/"+testkit.Web)
	inprocess.StartControllerAs(t, w, between.Kubeconfig).AwaitReady(t, true)
	witness.AwaitKnown(t)
	w.AwaitRecord(t, testkit.Web, "configmap/app", "secret/db")
	w.Annotate(t, testkit.Web, settings.Quiet, "0s")
	for i := range 3 {
		before := w.Shown(t, testkit.Web)
		between.Before(func(patch int) {
			if patch > i+1 {
				return
			}
			web, body := testkit.Deployment(testkit.Web, "", ""), fmt.Sprintf(`{"metadata":{"labels":{"noise":"%d-%d"}}}`, i, patch)
			web.Namespace = w.Namespace
			if err := w.Client.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
				t.Errorf("write the Deployment before the patch: %v", err)
			}
		})
		w.SetConfig(t, "app", "key", fmt.Sprint("turn ", i))
		w.AwaitRollout(t, testkit.Web, before)
		// Every patch but one was refused.
		if got := between.Passed(); got < i+2 {
			t.Errorf("change %d was delivered by %d patches, although another client wrote the Deployment before the first %d", i, got, i+1)
		}
		// Two templates in quick succession would be one revision to a busy controller
		// of Deployments.
		labtest.Eventually(t, testkit.Patience, func() (bool, string) {
			n := w.Revisions(t, testkit.Web)
			return n >= i+2, fmt.Sprintf("%d revisions after %d changes", n, i+1)
		})
	}
	witness.Pass(t)
	if got := w.Revisions(t, testkit.Web); got != 4 {
		t.Errorf("%d revisions after 3 changes, want 4", got)
	}
}

// awaitFurtherHeld: a further change under the same hold is told of by an event of
// its own; the client library folds events that look alike to it.
func awaitFurtherHeld(t *testing.T, w *testkit.World) {
	t.Helper()
	held := func() int {
		n := 0
		for _, e := range w.Events(t, testkit.Web) {
			if strings.Contains(e, "Held") {
				n++
			}
		}
		return n
	}
	before := held()
	w.SetConfig(t, "app", "key", "3")
	labtest.Eventually(t, testkit.Patience, func() (bool, string) {
		n := held()
		return n > before, fmt.Sprintf("%d Held events, want more than %d after another change during the hold: %q", n, before, w.Events(t, testkit.Web))
	})
}
